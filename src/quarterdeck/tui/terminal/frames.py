"""Frames: what changed on one terminal's screen, as compact bytes.

Rows are runs of (style number, cells, characters) followed by the row's text. A style is defined in
the first frame that uses it; both ends number styles in the order of their definition and start
over together when the table is full.
"""

import struct
from dataclasses import dataclass

from quarterdeck.tui.terminal.core import (
    CellStyle,
    Color,
    Cursor,
    Mode,
    Row,
    Run,
    Scrollback,
    State,
)
from quarterdeck.tui.terminal.errors import BadFrame
from quarterdeck.tui.terminal.text import clean_title, fit

_HEAD = struct.Struct("<HHHHBBIIIHIHHH")
_STYLE = struct.Struct("<IIIHB")
_ROW = struct.Struct("<HHI")
_RUN = struct.Struct("<HHH")
_VISIBLE, _STYLES_ANEW = 1, 2
_STYLES_LIMIT = 20_000
_NO_COLOR, _PALETTE = 0xFFFFFFFF, 0x01000000


@dataclass(frozen=True, slots=True)
class Frame:
    """What changed since the frame before: some rows by their place, and the state."""

    state: State
    rows: list[tuple[int, Row]]


def _pack_color(color: Color) -> int:
    match color:
        case None:
            return _NO_COLOR
        case int():
            return _PALETTE | color
        case (r, g, b):
            return r | g << 8 | b << 16


def _unpack_color(value: int) -> Color:
    if value == _NO_COLOR:
        return None
    if value & _PALETTE:
        return value & 0xFF
    return value & 0xFF, value >> 8 & 0xFF, value >> 16 & 0xFF


class FrameEncoder:
    """The child's end, one for each terminal."""

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
        head = _HEAD.pack(
            state.cols,
            state.rows,
            cursor.x,
            cursor.y,
            (_VISIBLE if cursor.visible else 0) | (_STYLES_ANEW if anew else 0),
            cursor.shape,
            state.modes,
            bar.total,
            bar.offset,
            bar.rows,
            state.bells,
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
            runs.append(_RUN.pack(number, cells, len(text)))
            texts.append(text)
        raw = "".join(texts).encode("utf-8", "replace")
        return b"".join([_ROW.pack(place, len(runs), len(raw)), *runs, raw])


def _pack_style(style: CellStyle) -> bytes:
    fg, bg, attributes, underline, line = style
    return _STYLE.pack(_pack_color(fg), _pack_color(bg), _pack_color(line), attributes, underline)


class FrameDecoder:
    """The cockpit's end, one for each terminal. Its text is fit for a screen: see `text.fit`."""

    def __init__(self) -> None:
        self._styles: list[CellStyle] = []

    def decode(self, body: bytes) -> Frame:
        """A frame from bytes.

        Raises:
            BadFrame: they are no frame.
        """
        try:
            return self._decode(body)
        except (struct.error, IndexError, ValueError) as e:
            raise BadFrame(f"a frame cannot be read: {e}") from e

    def _decode(self, body: bytes) -> Frame:
        (
            cols, rows, x, y, flags, shape, modes, total, offset, shown, bells, title, styles, changed,
        ) = _HEAD.unpack_from(body)  # fmt: skip
        at = _HEAD.size
        name = body[at : at + title].decode("utf-8", "replace")
        at = self._define(body, at + title, styles, bool(flags & _STYLES_ANEW))
        found: list[tuple[int, Row]] = []
        for _ in range(changed):
            place, runs, size = _ROW.unpack_from(body, at)
            at += _ROW.size
            end = at + runs * _RUN.size
            if end + size > len(body):
                raise BadFrame("a row is cut")
            text = body[end : end + size].decode("utf-8", "replace")
            found.append((place, self._row(body[at:end], text)))
            at = end + size
        state = State(
            cols,
            rows,
            Cursor(x, y, bool(flags & _VISIBLE), shape),
            Mode(modes),
            Scrollback(total, offset, shown),
            clean_title(name),
            bells,
        )
        return Frame(state, found)

    def _define(self, body: bytes, at: int, count: int, anew: bool) -> int:
        if anew:
            self._styles = []
        end = at + count * _STYLE.size
        for fg, bg, line, attributes, underline in _STYLE.iter_unpack(body[at:end]):
            self._styles.append(
                CellStyle(
                    _unpack_color(fg), _unpack_color(bg), attributes, underline, _unpack_color(line)
                )
            )
        return end

    def _row(self, packed: bytes, text: str) -> Row:
        styles = self._styles
        simple = text.isascii() and text.isprintable()
        runs: list[Run] = []
        start = 0
        for number, cells, length in _RUN.iter_unpack(packed):
            part = text[start : start + length]
            start += length
            if not simple:
                part = fit(part, cells)
            elif length != cells:
                raise BadFrame("a run is not as wide as its text")
            runs.append(Run(part, cells, styles[number]))
        return tuple(runs)
