"""Messages between the cockpit and the emulator's process, over one stream socket.

A message is a header (length of the body, kind, number of the terminal) and a body. No pickle and
no JSON: bodies are fixed structs and raw bytes, and the cockpit checks every length, since the
other end may have gone wrong.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from quarterdeck.tui.terminal.errors import BadFrame

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


class Command(IntEnum):
    """What the cockpit says."""

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
    """1 begins, 0 ends."""
    READ = 16
    FIND = 17
    LINK = 18


class Report(IntEnum):
    """What the emulator's process says."""

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
    """A message as bytes."""
    return HEADER.pack(len(body), kind, terminal) + body


class Splitter:
    """Cuts a stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Parcel]:
        """The messages that `data` completes.

        Raises:
            BadFrame: a length is impossible; the stream is of no use any more.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                length, kind, terminal = HEADER.unpack_from(self._buffer, start)
                if length > BODY_LIMIT:
                    raise BadFrame(f"a message of {length} bytes")
                body = start + HEADER.size
                if len(self._buffer) < body + length:
                    break
                start = body + length
                yield Parcel(kind, terminal, bytes(self._buffer[body:start]))
        finally:
            del self._buffer[:start]
