"""Frames: what changed on one terminal's screen, written as compact bytes.

Rows are runs of (style number, cells, characters) followed by the row's text. A style is defined in
the first frame that uses it; both ends number styles in the order of their definition and start
over together when the table is full.
"""

import struct
from dataclasses import dataclass

from quarterdeck.tui.terminal.core import (
    CellStyle,
    Color,
    Row,
    State,
)

HEAD = struct.Struct("<HHHHBBIIIHIIIHHH")
STYLE = struct.Struct("<IIIHB")
ROW = struct.Struct("<HHI")
RUN = struct.Struct("<HHH")
VISIBLE, STYLES_ANEW, READS, MARKS = 1, 2, 4, 8
_STYLES_LIMIT = 20_000
NO_COLOR, PALETTE = 0xFFFFFFFF, 0x01000000


@dataclass(frozen=True, slots=True)
class Frame:
    """What changed since the frame before: some rows by their place, and the state."""

    state: State
    rows: list[tuple[int, Row]]


def _pack_color(color: Color) -> int:
    match color:
        case None:
            return NO_COLOR
        case int():
            return PALETTE | color
        case (r, g, b):
            return r | g << 8 | b << 16


class FrameEncoder:
    """The child's end, one for each terminal. The other end is `decoder.FrameDecoder`."""

    def __init__(self) -> None:
        self._numbers: dict[CellStyle, int] = {}

    def encode(self, state: State, rows: list[tuple[int, Row]]) -> bytes:
        """A frame as bytes."""
        anew = len(self._numbers) > _STYLES_LIMIT
        if anew:
            self._numbers.clear()
        known = len(self._numbers)
        packed = b"".join([self._row(place, row) for place, row in rows])
        styles = list(self._numbers)[known:]
        title = state.title.encode()
        cursor, bar = state.cursor, state.scrollback
        head = HEAD.pack(
            state.cols,
            state.rows,
            cursor.x,
            cursor.y,
            _flags(state) | (STYLES_ANEW if anew else 0),
            cursor.shape,
            state.modes,
            bar.total,
            bar.offset,
            bar.rows,
            state.bells,
            state.reading.matches if state.reading else 0,
            state.reading.match if state.reading else 0,
            len(title),
            len(styles),
            len(rows),
        )
        return b"".join([head, title, *map(_pack_style, styles), packed])

    def _row(self, place: int, row: Row) -> bytes:
        numbers = self._numbers
        runs: list[bytes] = []
        texts: list[str] = []
        for text, cells, style in row:
            number = numbers.get(style)
            if number is None:
                number = numbers[style] = len(numbers)
            runs.append(RUN.pack(number, cells, len(text)))
            texts.append(text)
        raw = "".join(texts).encode("utf-8", "replace")
        return b"".join([ROW.pack(place, len(runs), len(raw)), *runs, raw])


def _flags(state: State) -> int:
    flags = VISIBLE if state.cursor.visible else 0
    if state.reading is not None:
        flags |= READS | (MARKS if state.reading.marking else 0)
    return flags


def _pack_style(style: CellStyle) -> bytes:
    fg, bg, attributes, underline, line = style
    return STYLE.pack(_pack_color(fg), _pack_color(bg), _pack_color(line), attributes, underline)
