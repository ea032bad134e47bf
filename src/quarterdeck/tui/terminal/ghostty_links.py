"""Links in a libghostty terminal: those that programs make (OSC 8), and addresses in the text."""

import re
from typing import Any

import pyghostty

from quarterdeck.tui.terminal.ghostty_grid import SCREEN, Grid, Place, is_linked, row_text, sized
from quarterdeck.tui.terminal.ghostty_selection import plain_text

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

LINK_CHARACTERS = 4096
ROWS_SEARCHED = 2000
_BOUNDARIES = " \t\"'<>|`{}\N{BOX DRAWINGS LIGHT VERTICAL}\N{BOX DRAWINGS HEAVY VERTICAL}"
_ADDRESS = re.compile(r"(?:https?|ftp|file)://[^\s\x00]+|mailto:[^\s\x00]+@[^\s\x00]+", re.I)
_PAIRS = {")": "(", "]": "["}


def cut_address(word: str) -> str:
    """The address in a word, without what only follows it in a sentence."""
    found = _ADDRESS.search(word)
    if found is None:
        return ""
    address = found[0]
    while address and (
        address[-1] in ".,;:!?'\"*" or _is_unpaired(address, _PAIRS.get(address[-1], ""))
    ):
        address = address[:-1]
    return address[:LINK_CHARACTERS]


def _is_unpaired(address: str, opening: str) -> bool:
    return bool(opening) and address.count(address[-1]) > address.count(opening)


class Links:
    """The links of one terminal."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._boundaries = ffi.new("uint32_t[]", [0, *map(ord, _BOUNDARIES)])

    def at(self, ref: Any) -> str:
        """Where a cell leads, or an empty text."""
        return self._grid.uri(ref)[:LINK_CHARACTERS] or cut_address(self._word(ref))

    def _word(self, ref: Any) -> str:
        options = sized("GhosttyTerminalSelectWordOptions")
        options.ref = ref[0]
        options.boundary_codepoints = self._boundaries
        options.boundary_codepoints_len = len(self._boundaries)
        selection = sized("GhosttySelection")
        if lib.ghostty_terminal_select_word(self._grid.terminal, options, selection):
            return ""
        return plain_text(self._grid.terminal, selection)

    def next(self, place: Place, step: int, size: tuple[int, int]) -> Place | None:
        """Where the next link begins, older with -1 and newer with 1; `size`: columns and rows."""
        x, y = place
        cols, total = size
        for row in range(y, max(-1, min(y + step * ROWS_SEARCHED, total)), step):
            starts = self._starts(row, cols)
            if row == y:
                starts = [start for start in starts if (start - x) * step > 0]
            if starts:
                return starts[0 if step > 0 else -1], row
        return None

    def _starts(self, y: int, cols: int) -> list[int]:
        raw = self._grid.cells(y, cols)
        starts = {found.start() for found in _ADDRESS.finditer(row_text(raw))}
        uri = ""
        for x, cell in enumerate(raw):
            if not is_linked(cell):
                uri = ""
                continue
            ref = self._grid.ref(x, y, SCREEN)
            here = self._grid.uri(ref) if ref is not None else ""
            if here != uri:
                starts.add(x)
            uri = here
        return sorted(starts)
