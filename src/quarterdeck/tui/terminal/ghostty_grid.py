"""libghostty: rows, cells and links.

Places in a libghostty terminal: cells by their coordinates, and the text of a row.

`VIEW` counts from the top of the part in view, `SCREEN` from the oldest row kept. A reference is
valid until the terminal is fed; a tracked one moves along with its cell.

Reads changed rows out of libghostty's render state, as fast as Python can.

The raw cells of a row come as one array of 64-bit words. Their layout is not part of the library's
API, so `check_layout` compares it with the library's own accessors once at start.
"""

import struct
from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import PLAIN, Attribute, CellRun, CellStyle, Color, Row

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

VIEW = int(lib.GHOSTTY_POINT_TAG_VIEWPORT)
SCREEN = int(lib.GHOSTTY_POINT_TAG_SCREEN)
TAIL = "\0"
"""The second cell of a wide character."""
_CODE = (1 << 21) - 1
_WIDE_SHIFT, _TAIL_WIDTH = 42, 2
_LINK = 1 << 45
_BACKGROUND = 2
_URI_BYTES = 8192

Place = tuple[int, int]
"""Column and row."""


def sized(name: str) -> Any:
    """Return a new struct that knows its own size."""
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
        """Return a reference to a cell, or None."""
        ref = sized("GhosttyGridRef")
        return None if self._locate(self.terminal, _point(x, y, tag), ref) else ref

    def place(self, ref: Any, tag: int = SCREEN) -> Place | None:
        """Return the position of a referenced cell; None when it is not in that part."""
        found = ffi.new("GhosttyPointCoordinate*")
        if lib.ghostty_terminal_point_from_grid_ref(self.terminal, ref, tag, found):
            return None
        return int(found.x), int(found.y)

    def track(self, x: int, y: int, tag: int = VIEW) -> Any:
        """Return a tracked reference, to be freed with `untrack`; or None."""
        handle = ffi.new("GhosttyTrackedGridRef*")
        return None if self._track(self.terminal, _point(x, y, tag), handle) else handle[0]

    def tracked(self, handle: Any, tag: int = SCREEN) -> Place | None:
        """Return the current position of a tracked cell; None when it no longer exists."""
        found = ffi.new("GhosttyPointCoordinate*")
        if lib.ghostty_tracked_grid_ref_point(handle, tag, found):
            return None
        return int(found.x), int(found.y)

    def snapshot(self, handle: Any) -> Any:
        """Return a plain reference to a tracked cell, or None."""
        ref = sized("GhosttyGridRef")
        return None if lib.ghostty_tracked_grid_ref_snapshot(handle, ref) else ref

    @staticmethod
    def untrack(handle: Any) -> None:
        """Free a tracked reference."""
        lib.ghostty_tracked_grid_ref_free(handle)

    def cells(self, y: int, cols: int) -> list[int]:
        """Return the raw cells of a row of the SCREEN."""
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
        """Return the program's own link at a cell, or an empty text."""
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
    """Return one character for each cell: of a grapheme the first, `TAIL` after a wide one."""
    return "".join(map(_character, raw))


def _character(cell: int) -> str:
    if (cell >> _WIDE_SHIFT) & 3 == _TAIL_WIDTH:
        return TAIL
    code = (cell >> 2) & _CODE if cell & 3 < _BACKGROUND else 0
    return chr(code) if code else " "


def is_linked(cell: int) -> bool:
    """Return whether a cell has a link of the program's own."""
    return bool(cell & _LINK)


# A cell: tag 2 bits, content 24 (code point, palette index or RGB), style id 16, width 2, flags.
_TAG = 0b11
_CLUSTER, _BG_PALETTE = 1, 2
_STYLE_SHIFT, _ROW_WIDE_SHIFT = 26, 42
_STYLE_MASK = 0xFFFF
_LOOK_MASK = (_STYLE_MASK << _STYLE_SHIFT) | (1 << _ROW_WIDE_SHIFT)
_WIDE, _TAIL = 1, 2
_ASCII_END = 0x80
SELECTED, MATCH, MATCH_HERE = 1 << 63, 1 << 62, 1 << 61
"""Our own flag, in bits that the library leaves free."""
_MARKS = SELECTED | MATCH | MATCH_HERE
Marks = dict[int, list[tuple[int, int, int]]]
"""By row in view: first and last cell, and the bit to set."""
_STYLES_KEPT = 8192

# Bits of the eight flags in the order in which the library keeps them.
_FLAGS = (
    Attribute.BOLD,
    Attribute.ITALIC,
    Attribute.FAINT,
    Attribute.BLINK,
    Attribute.INVERSE,
    Attribute.INVISIBLE,
    Attribute.STRIKE,
    Attribute.OVERLINE,
)
_STYLE = struct.Struct("<8x I4x4s4x I4x4s4x I4x4s4x 8s i4x")
"""`GhosttyStyle`: three colors (tag, value), eight flags, the underline."""


def _color(tag: int, value: bytes) -> Color:
    if tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
        return value[0]
    if tag == lib.GHOSTTY_STYLE_COLOR_RGB:
        return value[0], value[1], value[2]
    return None


def _style(raw: bytes) -> CellStyle:
    fg_tag, fg, bg_tag, bg, line_tag, line, flags, underline = _STYLE.unpack(raw)
    attributes = sum(int(flag) for flag, on in zip(_FLAGS, flags, strict=True) if on)
    return CellStyle(
        _color(fg_tag, fg), _color(bg_tag, bg), attributes, underline, _color(line_tag, line)
    )


def _marked(style: CellStyle, cell: int) -> CellStyle:
    attributes = style.attributes
    if cell & SELECTED:
        attributes |= Attribute.SELECTED
    if cell & MATCH:
        attributes |= Attribute.MATCH
    if cell & MATCH_HERE:
        attributes |= Attribute.MATCH_HERE
    return style._replace(attributes=attributes)


_select_cell: Any = lib.ghostty_render_state_row_cells_select
_read_cell: Any = lib.ghostty_render_state_row_cells_get
_CELL_STYLE = int(lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_STYLE)


class RowReader:
    """Turns the changed rows of one render state into runs."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._rows = ffi.new("GhosttyRenderStateRowIterator*")
        pyghostty.core.check(
            lib.ghostty_render_state_row_iterator_new(ffi.NULL, self._rows), "rows"
        )
        self._cells = ffi.new("GhosttyRenderStateRowCells*")
        pyghostty.core.check(lib.ghostty_render_state_row_cells_new(ffi.NULL, self._cells), "cells")
        self._view = ffi.new("GhosttyCellsView*")
        self._place = ffi.new("uint16_t*")
        self._raw_style = ffi.new("GhosttyStyle*")
        self._raw_style.size = ffi.sizeof("GhosttyStyle")
        self._style_bytes = ffi.buffer(self._raw_style)
        self._selection = ffi.new("GhosttyRenderStateRowSelection*")
        self._selection.size = ffi.sizeof("GhosttyRenderStateRowSelection")
        self._text = ffi.new("uint8_t[]", 256)
        self._buffer = ffi.new("GhosttyBuffer*", {"ptr": self._text, "cap": 256})
        self._styles: dict[bytes, CellStyle] = {}

    def close(self) -> None:
        """Free the iterators."""
        lib.ghostty_render_state_row_cells_free(self._cells[0])
        lib.ghostty_render_state_row_iterator_free(self._rows[0])

    def read(
        self, full: bool, selecting: bool, marks: Marks | None = None
    ) -> list[tuple[int, Row]]:
        """Return the changed rows, or all of them when `full`, with their place in view."""
        marks = marks or {}
        lib.ghostty_render_state_get(
            self._state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, self._rows
        )
        found: list[tuple[int, Row]] = []
        if full:
            place = 0
            while lib.ghostty_render_state_row_iterator_next(self._rows[0]):
                found.append((place, self._row(selecting, marks.get(place))))
                place += 1
            return found
        while lib.ghostty_render_state_row_iterator_next_dirty(self._rows[0], self._place):
            place = int(self._place[0])
            found.append((place, self._row(selecting, marks.get(place))))
        return found

    def _row(self, selecting: bool, marks: list[tuple[int, int, int]] | None) -> Row:
        row = self._rows[0]
        lib.ghostty_render_state_row_get(
            row, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, self._view
        )
        count = int(self._view.len)
        raw: list[int] = ffi.unpack(self._view.ptr, count) if count else []
        if selecting:
            self._mark_selection(raw)
        for first, last, bit in marks or ():
            for x in range(first, min(last + 1, len(raw))):
                raw[x] |= bit
        while raw and not raw[-1]:
            raw.pop()
        if not raw:
            return ()
        lib.ghostty_render_state_row_get(row, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS, self._cells)
        return self._runs(raw)

    def _mark_selection(self, raw: list[int]) -> None:
        found = lib.ghostty_render_state_row_get(
            self._rows[0], lib.GHOSTTY_RENDER_STATE_ROW_DATA_SELECTION, self._selection
        )
        if found != lib.GHOSTTY_SUCCESS:
            return
        for x in range(self._selection.start_x, min(self._selection.end_x + 1, len(raw))):
            raw[x] |= SELECTED

    def _runs(self, raw: list[int]) -> Row:
        """Join neighbors of the same style. Written flat: this loop is the cost of a frame."""
        runs: list[CellRun] = []
        look_mask = _LOOK_MASK | _MARKS
        styles: dict[int, CellStyle] = {}
        text: list[str] = []
        look, start, count = -1, 0, 0
        for x, cell in enumerate(raw):
            width = (cell >> _ROW_WIDE_SHIFT) & 3
            if width == _TAIL:
                continue
            tag = cell & _TAG
            now = cell & look_mask if tag < _BG_PALETTE else cell
            if now != look or tag == _CLUSTER:
                if text:
                    runs.append(self._run(raw, start, count, look, text, styles))
                look, start, count = (now if tag != _CLUSTER else -1), x, 0
                text = []
            count += 2 if width == _WIDE else 1
            if tag == _CLUSTER:
                runs.append(self._run(raw, x, count, now, [self._cluster(x)], styles))
                continue
            code = (cell >> 2) & 0x1FFFFF if tag == 0 else 0
            text.append(chr(code) if code else " ")
            if width == _WIDE and code < _ASCII_END:
                # What a character set makes of a wide character keeps both of its cells.
                text.append(" ")
        if text:
            runs.append(self._run(raw, start, count, look, text, styles))
        return tuple(runs)

    def _run(
        self,
        raw: list[int],
        x: int,
        cells: int,
        look: int,
        text: list[str],
        styles: dict[int, CellStyle],
    ) -> CellRun:
        style = styles.get(look)
        if style is None:
            style = styles[look] = self._look(raw[x], x)
        return CellRun("".join(text), cells, style)

    def _look(self, cell: int, x: int) -> CellStyle:
        tag, content = cell & _TAG, (cell >> 2) & 0xFFFFFF
        if tag == _BG_PALETTE:
            style = CellStyle(bg=content & 0xFF)
        elif tag > _BG_PALETTE:
            style = CellStyle(bg=(content & 0xFF, (content >> 8) & 0xFF, content >> 16))
        elif (cell >> _STYLE_SHIFT) & _STYLE_MASK:
            style = self._style_at(x)
        else:
            style = PLAIN
        return _marked(style, cell) if cell & _MARKS else style

    def _style_at(self, x: int) -> CellStyle:
        cells = self._cells[0]
        _select_cell(cells, x)
        _read_cell(cells, _CELL_STYLE, self._raw_style)
        key = self._style_bytes[:]
        style = self._styles.get(key)
        if style is None:
            if len(self._styles) >= _STYLES_KEPT:
                self._styles.clear()
            style = self._styles[key] = _style(key)
        return style

    def _cluster(self, x: int) -> str:
        cells = self._cells[0]
        lib.ghostty_render_state_row_cells_select(cells, x)
        self._buffer.len = 0
        failed = lib.ghostty_render_state_row_cells_get(
            cells, lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_UTF8, self._buffer
        )
        if failed:
            return "\N{REPLACEMENT CHARACTER}"
        return ffi.buffer(self._text, self._buffer.len)[:].decode("utf-8", "replace")


def check_layout(cell: int) -> None:
    """Compare our reading of a raw cell with the library's own.

    Raises:
        RuntimeError: the library lays out cells in another way than this module reads them.
    """
    code = ffi.new("uint32_t*")
    style = ffi.new("uint16_t*")
    wide = ffi.new("GhosttyCellWide*")
    lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_CODEPOINT, code)
    lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_STYLE_ID, style)
    lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_WIDE, wide)
    ours = (
        (cell >> 2) & 0x1FFFFF,
        (cell >> _STYLE_SHIFT) & _STYLE_MASK,
        (cell >> _ROW_WIDE_SHIFT) & 3,
    )
    if ours != (code[0], style[0], wide[0]) or ffi.sizeof("GhosttyStyle") != _STYLE.size:
        raise RuntimeError("the terminal library lays out its cells in an unknown way")
