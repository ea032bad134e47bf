"""Going through a libghostty terminal with a cursor of the reader's, while the program goes on.

The cursor is on a cell that the library tracks, and stays in its row of the view: whatever is printed
below does not move what is read.
"""

from collections.abc import Callable
from functools import lru_cache

from quarterdeck.tui.terminal.core import Reading, Scrollback, SelectionKind, Step
from quarterdeck.tui.terminal.ghostty_grid import SCREEN, TAIL, Grid, Place, row_text
from quarterdeck.tui.terminal.ghostty_links import Links
from quarterdeck.tui.terminal.ghostty_rows import Marks
from quarterdeck.tui.terminal.ghostty_search import Searcher
from quarterdeck.tui.terminal.ghostty_selection import Selector
from quarterdeck.tui.terminal.words import Words

_WHEEL_LINES = 3
_KINDS = {
    Step.MARK_CELLS: SelectionKind.CELL,
    Step.MARK_WORD: SelectionKind.WORD,
    Step.MARK_LINES: SelectionKind.LINE,
}


class Reader:
    """One terminal's reader. `scroll` moves the part in view, `view` tells which it is."""

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
        """What the reader does, or null."""
        if not self.active:
            return None
        return Reading(self._marking, self._searcher.matches, self._searcher.match)

    @property
    def cursor(self) -> Place:
        """The cursor in the view."""
        x, y = self._place
        return x, y - self._view()[1].offset

    @property
    def _place(self) -> Place:
        found = self._grid.tracked(self._handle) if self._handle is not None else None
        # What was read may have been thrown away: then on the oldest row in view.
        return found or (0, self._view()[1].offset)

    def start(self, x: int, y: int) -> None:
        """Takes the cursor, at a cell of the view."""
        if not self.active:
            self.active = True
            self._put((x, y + self._view()[1].offset))

    def stop(self) -> None:
        """Gives the cursor back."""
        self.active = self._marking = False
        self._origin = None
        self._searcher.clear()
        self._selector.clear()
        if self._handle is not None:
            self._grid.untrack(self._handle)
            self._handle = None

    def settle(self) -> None:
        """Brings the cursor's row to where it was in the view, behind what was printed."""
        bar = self._view()[1]
        wanted = self._place[1] - self._row
        if wanted != bar.offset:
            self._scroll(wanted - bar.offset)
            self._row = self._place[1] - self._view()[1].offset
        self._searcher.refresh()

    def marks(self) -> Marks:
        """What the search marks in the part in view."""
        cols, bar = self._view()
        return self._searcher.marks(bar.offset, cols, bar.rows) if self.active else {}

    def find(self, text: str) -> None:
        """Searches back from where the search began; text after text while it is being typed."""
        if self._origin is None:
            self._origin = self._place
        self._searcher.find(text)
        found = self._searcher.step_before(self._origin) if text else None
        self._put(found or self._origin)

    def read(self, step: Step) -> None:
        """Does one step."""
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
                self._put(self._searcher.step(step is Step.NEXT_MATCH) or self._place)
            case Step.NEXT_LINK | Step.PREVIOUS_LINK:
                cols, bar = self._view()
                way = 1 if step is Step.NEXT_LINK else -1
                found = self._links.next(self._place, way, (cols, bar.total))
                self._put(found or self._place)
            case _:
                self._move(step)

    def link(self) -> str:
        """Where the cell under the cursor leads."""
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
        """How far a step moves the part in view with the cursor in it."""
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
        """Moves the view and the cursor in it; at an end only the cursor moves."""
        x, y = self._place
        self._scroll(lines)
        self._put((x, y + lines))

    def _put(self, place: Place, *, extend: bool = True) -> None:
        """Moves the cursor to a cell of the SCREEN, and the view as far as it takes."""
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
