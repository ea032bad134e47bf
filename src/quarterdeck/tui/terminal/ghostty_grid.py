"""Places in a libghostty terminal: cells by their coordinates, and the text of a row.

`VIEW` counts from the top of what is shown, `SCREEN` from the oldest row that is kept. A reference is
good until the terminal is fed; a tracked one moves along with its cell.
"""

from typing import Any

import pyghostty

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

VIEW = int(lib.GHOSTTY_POINT_TAG_VIEWPORT)
SCREEN = int(lib.GHOSTTY_POINT_TAG_SCREEN)
TAIL = "\0"
"""Stands for the second cell of a wide character."""
_CODE = (1 << 21) - 1
_WIDE_SHIFT, _TAIL_WIDTH = 42, 2
_LINK = 1 << 45
_BACKGROUND = 2
_URI_BYTES = 8192

Place = tuple[int, int]
"""Column and row."""


def sized(name: str) -> Any:
    """A new struct that knows its own size."""
    return pyghostty.core.init_sized(name)


class Grid:
    """The cells of one terminal."""

    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal
        # A union cannot be passed by value through cffi; a struct of the same layout can.
        self._track: Any = ffi.cast(
            "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyTrackedGridRef*)",
            ffi.addressof(lib, "ghostty_terminal_grid_ref_track"),
        )
        self._locate: Any = ffi.cast(
            "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)",
            ffi.addressof(lib, "ghostty_terminal_grid_ref"),
        )

    def ref(self, x: int, y: int, tag: int = VIEW) -> Any:
        """A reference to a cell, or null."""
        ref = sized("GhosttyGridRef")
        return None if self._locate(self.terminal, _point(x, y, tag), ref) else ref

    def place(self, ref: Any, tag: int = SCREEN) -> Place | None:
        """Where a referenced cell is; null when it is not in that part."""
        found = ffi.new("GhosttyPointCoordinate*")
        if lib.ghostty_terminal_point_from_grid_ref(self.terminal, ref, tag, found):
            return None
        return int(found.x), int(found.y)

    def track(self, x: int, y: int, tag: int = VIEW) -> Any:
        """A tracked reference, to be freed with `untrack`; or null."""
        made = ffi.new("GhosttyTrackedGridRef*")
        return None if self._track(self.terminal, _point(x, y, tag), made) else made[0]

    def tracked(self, handle: Any, tag: int = SCREEN) -> Place | None:
        """Where a tracked cell is now; null when it is gone."""
        found = ffi.new("GhosttyPointCoordinate*")
        if lib.ghostty_tracked_grid_ref_point(handle, tag, found):
            return None
        return int(found.x), int(found.y)

    def snapshot(self, handle: Any) -> Any:
        """A plain reference to a tracked cell, or null."""
        ref = sized("GhosttyGridRef")
        return None if lib.ghostty_tracked_grid_ref_snapshot(handle, ref) else ref

    @staticmethod
    def untrack(handle: Any) -> None:
        """Frees a tracked reference."""
        lib.ghostty_tracked_grid_ref_free(handle)

    def cells(self, y: int, cols: int) -> list[int]:
        """The raw cells of a row of the SCREEN."""
        ref = self.ref(0, y, SCREEN)
        if ref is None:
            return []
        cell = ffi.new("GhosttyCell*")
        raw: list[int] = []
        for x in range(cols):
            ref.x = x
            if lib.ghostty_grid_ref_cell(ref, cell):
                break
            raw.append(int(cell[0]))
        return raw

    def uri(self, ref: Any) -> str:
        """Where the program's own link at a cell leads, or an empty text."""
        size = ffi.new("size_t*")
        buffer = ffi.new("uint8_t[]", _URI_BYTES)
        if lib.ghostty_grid_ref_hyperlink_uri(ref, buffer, _URI_BYTES, size):
            return ""
        return ffi.buffer(buffer, size[0])[:].decode("utf-8", "replace")


def _point(x: int, y: int, tag: int) -> Any:
    point = ffi.new("GhosttyPointS*")
    point.tag, point.value.x, point.value.y = tag, x, y
    return point[0]


def row_text(raw: list[int]) -> str:
    """One character for each cell: of a grapheme the first, `TAIL` behind a wide one."""
    return "".join(map(_character, raw))


def _character(cell: int) -> str:
    if (cell >> _WIDE_SHIFT) & 3 == _TAIL_WIDTH:
        return TAIL
    code = (cell >> 2) & _CODE if cell & 3 < _BACKGROUND else 0
    return chr(code) if code else " "


def is_linked(cell: int) -> bool:
    """Whether a program's own link is on a cell."""
    return bool(cell & _LINK)
