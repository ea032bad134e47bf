"""The tail of one terminal's output, kept to bring a new emulator process to the same screen."""

from collections import deque
from dataclasses import dataclass
from itertools import islice

from quarterdeck.tui.terminal.core import Mode

LIMIT = 1 << 20
CHUNK = 32 << 10


@dataclass(slots=True)
class Chunk:
    """Some output. `answer`: the program still waits for replies to the queries in it."""

    data: bytes
    answer: bool


@dataclass(frozen=True, slots=True)
class Resize:
    """The size from here on."""

    cols: int
    rows: int


Entry = Chunk | Resize


class History:
    """At most 1 MiB of output with the sizes it was written for; the oldest goes first."""

    def __init__(self, cols: int, rows: int) -> None:
        self.start = Resize(cols, rows)
        """The size at the oldest entry kept."""
        self.size = self.start
        self.trimmed = False
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._dropped = 0

    def add(self, data: bytes, *, answer: bool) -> list[Chunk]:
        """Keeps output; gives it back in chunks of at most 32 KiB."""
        chunks = [Chunk(data[at : at + CHUNK], answer) for at in range(0, len(data), CHUNK)]
        for chunk in chunks:
            self._entries.append(chunk)
            self._bytes += len(chunk.data)
        self._trim()
        return chunks

    def resize(self, cols: int, rows: int) -> None:
        """Keeps a change of size."""
        self.size = Resize(cols, rows)
        self._entries.append(self.size)

    def _trim(self) -> None:
        while self._bytes > LIMIT:
            match self._entries.popleft():
                case Resize() as size:
                    self.start = size
                case Chunk(data=data):
                    self._bytes -= len(data)
                    self.trimmed = True
            self._dropped += 1

    def since(self, place: int) -> tuple[list[Entry], int]:
        """The entries kept from a place on (0 is the first ever), and the place after them."""
        skipped = max(0, place - self._dropped)
        return list(islice(self._entries, skipped, None)), self._dropped + len(self._entries)


def restore(modes: Mode) -> bytes:
    """Sets the modes that the program may have set in output no longer kept."""
    pairs = (
        (Mode.ALTERNATE_SCREEN, 1049),
        (Mode.CURSOR_KEYS, 1),
        (Mode.KEYPAD, 66),
        (Mode.BRACKETED_PASTE, 2004),
        (Mode.FOCUS_EVENTS, 1004),
        (Mode.MOUSE_X10, 9),
        (Mode.MOUSE_CLICK, 1000),
        (Mode.MOUSE_DRAG, 1002),
        (Mode.MOUSE_ANY, 1003),
        (Mode.MOUSE_SGR, 1006),
        (Mode.MOUSE_UTF8, 1005),
        (Mode.MOUSE_URXVT, 1015),
        (Mode.MOUSE_PIXELS, 1016),
        (Mode.BACKARROW, 67),
    )
    private = b"".join(b"\x1b[?%dh" % number for mode, number in pairs if modes & mode)
    new_line = b"\x1b[20h" if modes & Mode.NEW_LINE else b""
    told_apart = b"\x1b[>4;1m" if modes & Mode.SOME_KEYS else b""
    told_apart = b"\x1b[>4;2m" if modes & Mode.OTHER_KEYS else told_apart
    return private + new_line + told_apart
