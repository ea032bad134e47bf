"""Reading and searching in a libghostty terminal, with the reader's own cursor.

The program continues meanwhile. The cursor is on a cell that the library tracks, and stays in its row
of the view: output below does not move what is read.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import Reading, Scrollback, SelectionKind, Step
from quarterdeck.tui.terminal.ghostty_grid import (
    MATCH,
    MATCH_HERE,
    SCREEN,
    TAIL,
    Grid,
    Marks,
    Place,
    row_text,
    sized,
)
from quarterdeck.tui.terminal.ghostty_selection import Links, Selector

ROWS_SEARCHED = 500
"""Most empty rows before a word; beyond that the reader stays."""


class Words:
    """Rows of one width; `row` returns one character for each cell."""

    def __init__(self, row: Callable[[int], str], cols: int, total: int) -> None:
        self._row = row
        self._cols = cols
        self._total = total

    def next(self, place: Place) -> Place:
        """Return the start of the next word."""
        kind = self._kind(place)
        for here in self._walk(place, 1):
            now = self._kind(here)
            if now and (now != kind or here[0] == 0):
                return here
            kind = now
        return place

    def end(self, place: Place) -> Place:
        """Return the last character of this word, or of the next when it is there."""
        last, found = place, False
        for here in self._walk(place, 1):
            if found and self._kind(here) != self._kind(last):
                return last
            found, last = bool(self._kind(here)), here
        return last if found else place

    def previous(self, place: Place) -> Place:
        """Return the start of this word, or of the previous one when it is there."""
        last, found = place, False
        for here in self._walk(place, -1):
            if found and (self._kind(here) != self._kind(last) or last[0] == 0):
                return last
            found, last = bool(self._kind(here)), here
        return last if found else place

    def _kind(self, place: Place) -> int:
        """Return 0 for a blank, 1 for a letter, 2 for a sign."""
        x, y = place
        text = self._row(y)
        character = text[x] if x < len(text) else " "
        if character in " \0":
            return int(character == "\0" and x > 0 and self._kind((x - 1, y)))
        return 1 if character.isalnum() or character == "_" else 2

    def _walk(self, place: Place, step: int) -> Iterator[Place]:
        x, y = place
        last = y + step * ROWS_SEARCHED
        while 0 <= y < self._total and y != last:
            x += step
            if not 0 <= x < self._cols:
                y += step
                x = 0 if step > 0 else self._cols - 1
            if 0 <= y < self._total:
                yield x, y


ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

_SHOWN_MATCHES = 4096
"""Most matches marked around the part in view; even the largest screen of single letters has fewer."""
NEEDLE_BYTES = 1024


class Searcher:
    """One search of one terminal; the library counts matches from the newest."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._search: Any = None
        self._needle = b""

    @property
    def active(self) -> bool:
        """Whether a search is active."""
        return self._search is not None

    def find(self, text: str) -> None:
        """Search for a text; end the search when the text is empty."""
        self._needle = text.encode("utf-8", "ignore")[:NEEDLE_BYTES]
        self._start()

    def _start(self) -> None:
        self.clear()
        if not self._needle:
            return
        handle = ffi.new("GhosttySearch*")
        if lib.ghostty_search_new(ffi.NULL, handle, self._grid.terminal):
            return
        self._search = handle[0]
        buffer = ffi.new("uint8_t[]", self._needle)
        needle = ffi.new("GhosttyString*", {"ptr": buffer, "len": len(self._needle)})
        quiet = ffi.new("GhosttySearchScroll*", lib.GHOSTTY_SEARCH_SCROLL_NONE)
        lib.ghostty_search_set(self._search, lib.GHOSTTY_SEARCH_OPT_SELECT_SCROLL, quiet)
        lib.ghostty_search_set(self._search, lib.GHOSTTY_SEARCH_OPT_NEEDLE, needle)
        self.refresh()

    def refresh(self) -> None:
        """Search what has changed since."""
        if self._search is not None:
            lib.ghostty_search_run(self._search)

    def clear(self) -> None:
        """End the search."""
        if self._search is not None:
            lib.ghostty_search_free(self._search)
            self._search = None

    def step(self, older: bool, place: Place) -> Place | None:
        """Go to the next match from a place, wrapping around; return where it starts.

        The library steps from the match that it has selected. It selects another one when newer matches
        are printed, and none when the size changes.
        """
        self.refresh()
        if self.place == place:
            return self._step(older)
        self._start()
        found = self.step_before(place)
        return found if older and found != place else self._step(older)

    def step_before(self, place: Place) -> Place | None:
        """Go to the newest match that starts at or before a place, else to the newest of all.

        A search that has selected a match begins with the next older one.
        """
        x, y = place
        found = self._step(older=True)
        for _ in range(self.matches):
            if found is None or (found[1], found[0]) <= (y, x):
                return found
            found = self._step(older=True)
        return found

    def _step(self, older: bool) -> Place | None:
        if self._search is None:
            return None
        option = lib.GHOSTTY_SEARCH_OPT_SELECT_NEXT if older else lib.GHOSTTY_SEARCH_OPT_SELECT_PREV
        if lib.ghostty_search_set(self._search, option, ffi.NULL):
            return None
        return self.place

    @property
    def place(self) -> Place | None:
        """Where the selected match starts."""
        match = None if self._search is None else self._selected()
        return None if match is None else self._grid.place(ffi.new("GhosttyGridRef*", match.start))

    @property
    def matches(self) -> int:
        """The number of matches."""
        return self._count(lib.GHOSTTY_SEARCH_DATA_TOTAL_MATCHES)

    @property
    def match(self) -> int:
        """The selected match, from 1; 0 is none."""
        if self.place is None:
            return 0
        return self._count(lib.GHOSTTY_SEARCH_DATA_SELECTED_INDEX) + 1

    def _count(self, data: int) -> int:
        if self._search is None:
            return 0
        found = ffi.new("size_t*")
        return 0 if lib.ghostty_search_get(self._search, data, found) else int(found[0])

    def _selected(self) -> Any:
        match = sized("GhosttySelection")
        failed = lib.ghostty_search_get(self._search, lib.GHOSTTY_SEARCH_DATA_SELECTED_MATCH, match)
        return None if failed else match

    def marks(self, top: int, cols: int, rows: int) -> Marks:
        """Return the marks in the part in view, whose first row is `top` of the SCREEN."""
        marks: Marks = {}
        if self._search is None:
            return marks
        found = ffi.new("GhosttySelection[]", _SHOWN_MATCHES)
        buffer = ffi.new("GhosttySelectionBuffer*", {"ptr": found, "cap": _SHOWN_MATCHES})
        failed = lib.ghostty_search_get(
            self._search, lib.GHOSTTY_SEARCH_DATA_VIEWPORT_MATCHES, buffer
        )
        for number in range(0 if failed else min(buffer.len, _SHOWN_MATCHES)):
            self._mark(marks, found[number], MATCH, (top, cols, rows))
        if (selected := self._selected()) is not None:
            self._mark(marks, selected, MATCH_HERE, (top, cols, rows))
        return marks

    def _mark(self, marks: Marks, match: Any, bit: int, view: tuple[int, int, int]) -> None:
        top, cols, rows = view
        start = self._grid.place(ffi.new("GhosttyGridRef*", match.start))
        end = self._grid.place(ffi.new("GhosttyGridRef*", match.end))
        if start is None or end is None:
            return
        for y in range(max(start[1], top), min(end[1], top + rows - 1) + 1):
            first = start[0] if y == start[1] else 0
            last = end[0] if y == end[1] else cols - 1
            marks.setdefault(y - top, []).append((first, last, bit))


_WHEEL_LINES = 3
_KINDS = {
    Step.MARK_CELLS: SelectionKind.CELL,
    Step.MARK_WORD: SelectionKind.WORD,
    Step.MARK_LINES: SelectionKind.LINE,
}


class GhosttyReader:
    """One terminal's reader. `scroll` moves the part in view, `view` returns it."""

    def __init__(
        self,
        grid: Grid,
        selector: Selector,
        links: Links,
        scroll: Callable[[int], None],
        view: Callable[[], tuple[int, Scrollback]],
    ) -> None:
        self._grid = grid
        self._selector = selector
        self._searcher = Searcher(grid)
        self._links = links
        self._scroll = scroll
        self._view = view
        self._handle: object = None
        self._row = 0
        """The row of the view that the cursor stays in."""
        self._origin: Place | None = None
        self._marking = False
        self.active = False

    @property
    def reading(self) -> Reading | None:
        """The state of the reader, or None."""
        if not self.active:
            return None
        here = self._searcher.place == self._place
        return Reading(self._marking, self._searcher.matches, self._searcher.match if here else 0)

    @property
    def cursor(self) -> Place:
        """The cursor in the view."""
        x, y = self._place
        return x, y - self._view()[1].offset

    @property
    def _place(self) -> Place:
        found = self._grid.tracked(self._handle) if self._handle is not None else None
        # The cell may have been discarded: then use the oldest row in view.
        return found or (0, self._view()[1].offset)

    def start(self, x: int, y: int) -> None:
        """Take the cursor, at a cell of the view."""
        if not self.active:
            self.active = True
            self._put((x, y + self._view()[1].offset))

    def stop(self) -> None:
        """Give the cursor back."""
        self.active = self._marking = False
        self._origin = None
        self._searcher.clear()
        self._selector.clear()
        if self._handle is not None:
            self._grid.untrack(self._handle)
            self._handle = None

    def settle(self) -> None:
        """Move the cursor's row to where it was in the view, after new output."""
        bar = self._view()[1]
        wanted = self._place[1] - self._row
        if wanted != bar.offset:
            self._scroll(wanted - bar.offset)
            self._row = self._place[1] - self._view()[1].offset
        self._searcher.refresh()
        if self._searcher.matches and not self._searcher.match:  # the size has changed
            self._searcher.step_before(self._place)

    def marks(self) -> Marks:
        """Return the search's marks in the part in view."""
        cols, bar = self._view()
        return self._searcher.marks(bar.offset, cols, bar.rows) if self.active else {}

    def find(self, text: str) -> None:
        """Search backwards from where the search started, again for each typed character."""
        if self._origin is None:
            self._origin = self._place
        self._searcher.find(text)
        found = self._searcher.step_before(self._origin) if text else None
        self._put(found or self._origin)

    def read(self, step: Step) -> None:
        """Carry out one step."""
        self.settle()
        match step:
            case Step.MARK_CELLS | Step.MARK_WORD | Step.MARK_LINES:
                self._mark(_KINDS[step])
            case Step.UNMARK:
                self._marking = False
                self._selector.clear()
            case Step.SWAP:
                self._swap()
            case Step.NEXT_MATCH | Step.PREVIOUS_MATCH:
                self._origin = None
                here = self._place
                self._put(self._searcher.step(step is Step.NEXT_MATCH, here) or here)
            case Step.NEXT_LINK | Step.PREVIOUS_LINK:
                cols, bar = self._view()
                way = 1 if step is Step.NEXT_LINK else -1
                found = self._links.next(self._place, way, (cols, bar.total))
                self._put(found or self._place)
            case _:
                self._move(step)

    def link(self) -> str:
        """Return the link under the cursor."""
        x, y = self._place
        ref = self._grid.ref(x, y, SCREEN)
        return "" if ref is None else self._links.at(ref)

    def _mark(self, kind: SelectionKind) -> None:
        x, y = self.cursor
        if self._marking:
            self._selector.change_kind(kind, x, y)
            return
        self._marking = True
        self._selector.begin(x, y, kind)
        self._selector.extend(x, y)

    def _swap(self) -> None:
        other = self._selector.swap() if self._marking else None
        if other is not None:
            x, y = self._place
            self._put(other, extend=False)
            self._selector.anchor_at(x, y - self._view()[1].offset)
            self._extend()

    def _move(self, step: Step) -> None:
        lines = self._lines(step)
        if lines:
            self._page(lines)
        else:
            self._put(self._beside(step) or self._by_text(step) or self._in_view(step))

    def _lines(self, step: Step) -> int:
        """Return how far a step moves the part in view with the cursor in it."""
        rows = self._view()[1].rows
        way = -1 if step in (Step.PAGE_UP, Step.HALF_UP, Step.LINES_UP) else 1
        match step:
            case Step.PAGE_UP | Step.PAGE_DOWN:
                return way * max(1, rows - 1)
            case Step.HALF_UP | Step.HALF_DOWN:
                return way * max(1, rows // 2)
            case Step.LINES_UP | Step.LINES_DOWN:
                return way * _WHEEL_LINES
            case _:
                return 0

    def _text(self, y: int) -> str:
        return row_text(self._grid.cells(y, self._view()[0]))

    def _beside(self, step: Step) -> Place | None:
        x, y = self._place
        match step:
            case Step.LEFT:
                return x - 1, y
            case Step.RIGHT:
                return x + (2 if self._text(y)[x + 1 : x + 2] == TAIL else 1), y
            case Step.UP:
                return x, y - 1
            case Step.DOWN:
                return x, y + 1
            case _:
                return None

    def _by_text(self, step: Step) -> Place | None:
        x, y = self._place
        words = Words(lru_cache(maxsize=8)(self._text), self._view()[0], self._view()[1].total)
        match step:
            case Step.NEXT_WORD:
                return words.next((x, y))
            case Step.PREVIOUS_WORD:
                return words.previous((x, y))
            case Step.WORD_END:
                return words.end((x, y))
            case Step.LINE_START:
                return 0, y
            case Step.LINE_TEXT:
                text = self._text(y)
                return len(text) - len(text.lstrip()), y
            case Step.LINE_END:
                return max(0, len(self._text(y).rstrip(" \0")) - 1), y
            case _:
                return None

    def _in_view(self, step: Step) -> Place:
        x, y = self._place
        bar = self._view()[1]
        match step:
            case Step.OLDEST:
                return 0, 0
            case Step.NEWEST:
                return 0, bar.total - 1
            case Step.VIEW_TOP:
                return x, bar.offset
            case Step.VIEW_MIDDLE:
                return x, bar.offset + bar.rows // 2
            case Step.VIEW_BOTTOM:
                return x, bar.offset + bar.rows - 1
            case _:
                return x, y

    def _page(self, lines: int) -> None:
        """Move the view and the cursor in it; at an end only the cursor moves."""
        x, y = self._place
        self._scroll(lines)
        self._put((x, y + lines))

    def _put(self, place: Place, *, extend: bool = True) -> None:
        """Move the cursor to a cell of the SCREEN, and the view as far as necessary."""
        cols, bar = self._view()
        x, y = min(max(place[0], 0), cols - 1), min(max(place[1], 0), bar.total - 1)
        if x and row_text(self._grid.cells(y, cols))[x : x + 1] == TAIL:
            x -= 1
        handle = self._grid.track(x, y, SCREEN)
        if handle is None:
            return
        if self._handle is not None:
            self._grid.untrack(self._handle)
        self._handle = handle
        if y < bar.offset:
            self._scroll(y - bar.offset)
        elif y >= bar.offset + bar.rows:
            self._scroll(y - bar.offset - bar.rows + 1)
        self._row = y - self._view()[1].offset
        if extend:
            self._extend()

    def _extend(self) -> None:
        if self._marking:
            self._selector.extend(*self.cursor)
