"""Finding text in a libghostty terminal, its scrollback too."""

from typing import Any

import pyghostty

from quarterdeck.tui.terminal.ghostty_grid import Grid, Place, sized
from quarterdeck.tui.terminal.ghostty_rows import MATCH, MATCH_HERE, Marks

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

_SHOWN_MATCHES = 4096
"""So many are marked around the part in view; on the largest screen of single letters it is less."""
NEEDLE_BYTES = 1024


class Searcher:
    """One search of one terminal; the library counts matches from the newest."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._search: Any = None
        self._needle = b""

    @property
    def active(self) -> bool:
        """Whether something is searched for."""
        return self._search is not None

    def find(self, text: str) -> None:
        """Searches for a text anew; for nothing when it is empty."""
        self.clear()
        self._needle = text.encode("utf-8", "ignore")[:NEEDLE_BYTES]
        if not self._needle:
            return
        made = ffi.new("GhosttySearch*")
        if lib.ghostty_search_new(ffi.NULL, made, self._grid.terminal):
            return
        self._search = made[0]
        buffer = ffi.new("uint8_t[]", self._needle)
        needle = ffi.new("GhosttyString*", {"ptr": buffer, "len": len(self._needle)})
        quiet = ffi.new("GhosttySearchScroll*", lib.GHOSTTY_SEARCH_SCROLL_NONE)
        lib.ghostty_search_set(self._search, lib.GHOSTTY_SEARCH_OPT_SELECT_SCROLL, quiet)
        lib.ghostty_search_set(self._search, lib.GHOSTTY_SEARCH_OPT_NEEDLE, needle)
        self.refresh()

    def refresh(self) -> None:
        """Looks through what changed since."""
        if self._search is not None:
            lib.ghostty_search_run(self._search)

    def clear(self) -> None:
        """Searches for nothing."""
        if self._search is not None:
            lib.ghostty_search_free(self._search)
            self._search = None

    def step(self, older: bool) -> Place | None:
        """Goes to the next match, from the first to the last around the end; where it begins."""
        if self._search is None:
            return None
        self.refresh()
        option = lib.GHOSTTY_SEARCH_OPT_SELECT_NEXT if older else lib.GHOSTTY_SEARCH_OPT_SELECT_PREV
        if lib.ghostty_search_set(self._search, option, ffi.NULL):
            return None
        match = self._selected()
        return None if match is None else self._grid.place(ffi.new("GhosttyGridRef*", match.start))

    def step_before(self, place: Place) -> Place | None:
        """Goes to the newest match that begins at or before a place, else to the newest of all."""
        x, y = place
        found = self.step(older=True)
        for _ in range(self.matches):
            if found is None or (found[1], found[0]) <= (y, x):
                return found
            found = self.step(older=True)
        return found

    @property
    def matches(self) -> int:
        """How many there are."""
        return self._count(lib.GHOSTTY_SEARCH_DATA_TOTAL_MATCHES)

    @property
    def match(self) -> int:
        """Which of them is selected, from 1; 0 is none."""
        if self._search is None or self._selected() is None:
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
        """What to mark in the part in view, whose first row is `top` of the SCREEN."""
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
