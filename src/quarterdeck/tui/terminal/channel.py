"""Messages between the cockpit and the emulator's process, over one stream socket.

A message is a header (length of the body, kind, number of the terminal) and a body. No pickle and
no JSON: bodies are fixed structs and raw bytes, and the cockpit checks every length, since the
other end may be broken.

A frame is what changed on one terminal's screen. Rows are runs of (style number, cells, characters)
followed by the row's text. A style is defined in the first frame that uses it; both ends number
styles in the order of their definition and start over together when the table is full.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from quarterdeck.tui.terminal.core import CellStyle, Color, Row, State


class EmulatorError(Exception):
    """Base of this package's errors."""


class BadFrameError(EmulatorError):
    """The child process sent something that is not a message."""


HEADER = struct.Struct("<IBI")
BODY_LIMIT = 64 << 20
SIZE = struct.Struct("<HH")
"""Columns and rows; also a cell's x and y."""
COLORS = struct.Struct("<6B")
"""Foreground and background of the theme."""
NUMBER = struct.Struct("<I")
LINES = struct.Struct("<i")
SELECT = struct.Struct("<BHH")
LINK = struct.Struct("<IHHB")
"""A number, a cell in view, and 1 for where the reader is instead."""


class EmulatorCommand(IntEnum):
    """Messages from the cockpit."""

    OPEN = 1
    CLOSE = 2
    FEED = 3
    REPLAY = 4
    RESIZE = 5
    SHOW = 6
    HIDE = 7
    PAINTED = 8
    SCROLL = 9
    BOTTOM = 10
    SELECT = 11
    COPY = 12
    COLORS = 13
    SYNC = 14
    READING = 15
    """1 starts, 0 ends."""
    READ = 16
    FIND = 17
    LINK = 18


class Report(IntEnum):
    """Messages from the emulator's process."""

    READY = 1
    FRAME = 2
    REPLY = 3
    CONSUMED = 4
    COPIED = 5
    SYNCED = 6
    LINKED = 7
    CLIPBOARD = 8


EXTEND, CLEAR = 3, 4
"""First byte of SELECT besides the kinds of `core.SelectionKind`."""


class Parcel(NamedTuple):
    """One message."""

    kind: int
    terminal: int
    body: bytes


def pack(kind: int, terminal: int, body: bytes = b"") -> bytes:
    """Return a message as bytes."""
    return HEADER.pack(len(body), kind, terminal) + body


class Splitter:
    """Cuts a stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Parcel]:
        """Yield the messages that `data` completes.

        Raises:
            BadFrameError: a length is impossible; the stream is unusable from here on.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                length, kind, terminal = HEADER.unpack_from(self._buffer, start)
                if length > BODY_LIMIT:
                    raise BadFrameError(f"a message of {length} bytes")
                body = start + HEADER.size
                if len(self._buffer) < body + length:
                    break
                start = body + length
                yield Parcel(kind, terminal, bytes(self._buffer[body:start]))
        finally:
            del self._buffer[:start]


HEAD = struct.Struct("<HHHHBBIIIHIIIHHH")
STYLE = struct.Struct("<IIIHB")
ROW = struct.Struct("<HHI")
RUN = struct.Struct("<HHH")
VISIBLE, STYLES_RESET, READS, MARKS = 1, 2, 4, 8
_STYLES_LIMIT = 20_000
NO_COLOR, PALETTE = 0xFFFFFFFF, 0x01000000


@dataclass(frozen=True, slots=True)
class FrameDelta:
    """Changes since the previous frame: some rows by their place, and the state."""

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
        """Return a frame as bytes."""
        reset = len(self._numbers) > _STYLES_LIMIT
        if reset:
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
            _flags(state) | (STYLES_RESET if reset else 0),
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
