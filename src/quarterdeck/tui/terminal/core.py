"""The screen of a terminal, and the history of its output, as both processes represent them."""

from collections import deque
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from itertools import islice
from typing import NamedTuple

MIN_COLS, MIN_ROWS = 20, 5
"""Smaller screens are not given to a core: they make the native one abort."""
MAX_COLS, MAX_ROWS = 500, 200
CELL_PIXELS = (8, 16)
"""Sent to programs that ask for pixels; there are none."""
SCROLLBACK_LINES = 10_000
SCROLLBACK_ROW_BYTES, SCROLLBACK_CELL_BYTES = 128, 16
"""Room for a line that is kept, and for each of its cells. Plain text takes half of it; the rest is
for styles, links and composed characters, which are stored separately."""
CLIPBOARD_BYTES = 256 << 10
"""Longest text that a program may offer for the clipboard."""

Rgb = tuple[int, int, int]
Color = int | Rgb | None
"""A palette index 0..255, a 24-bit color, or None for the theme's own."""


class Attribute(IntFlag):
    """Text attributes of a cell."""

    NONE = 0
    BOLD = 1
    FAINT = 2
    ITALIC = 4
    BLINK = 8
    INVERSE = 16
    INVISIBLE = 32
    STRIKE = 64
    OVERLINE = 128
    SELECTED = 256
    MATCH = 512
    """A match of the reader's search."""
    MATCH_HERE = 1024
    """The match that the reader is at."""


class Underline(IntEnum):
    """How a cell is underlined."""

    NONE = 0
    SINGLE = 1
    DOUBLE = 2
    CURLY = 3
    DOTTED = 4
    DASHED = 5


class CellStyle(NamedTuple):
    """How a run of cells looks."""

    fg: Color = None
    bg: Color = None
    attributes: int = 0
    underline: int = 0
    underline_color: Color = None


PLAIN = CellStyle()


class CellRun(NamedTuple):
    """Neighboring cells with the same style. `cells` is their width; all are one or all two cells wide.

    A grapheme of several code points is a separate run.
    """

    text: str
    cells: int
    style: CellStyle


Row = tuple[CellRun, ...]
"""A row from its first cell; cells after the last run are blank in the theme's colors."""


class CursorShape(IntEnum):
    """Shape of the cursor that the program requested."""

    BAR = 0
    BLOCK = 1
    UNDERLINE = 2
    HOLLOW = 3


class CursorPosition(NamedTuple):
    """Position of the cursor, from 0. Also not `visible` outside the part in view."""

    x: int = 0
    y: int = 0
    visible: bool = True
    shape: int = CursorShape.BLOCK


class TerminalMode(IntFlag):
    """Modes that change what keys, mouse and paste send."""

    NONE = 0
    CURSOR_KEYS = 1
    KEYPAD = 2
    BRACKETED_PASTE = 4
    ALTERNATE_SCREEN = 8
    FOCUS_EVENTS = 16
    MOUSE_X10 = 32
    MOUSE_CLICK = 64
    MOUSE_DRAG = 128
    MOUSE_ANY = 256
    MOUSE_SGR = 512
    ALTERNATE_SCROLL = 1024
    BACKARROW = 2048
    MOUSE_UTF8 = 4096
    MOUSE_URXVT = 8192
    MOUSE_PIXELS = 16_384
    NEW_LINE = 32_768
    OTHER_KEYS = 65_536
    """`modifyOtherKeys` 2: keys with Ctrl or Shift are distinguished from each other."""
    SOME_KEYS = 131_072
    """`modifyOtherKeys` 1: only those without a control character."""
    KITTY_DISTINCT = 262_144
    """The kitty keyboard protocol: its flags 1, 8 and 16."""
    KITTY_ALL = 524_288
    KITTY_TEXT = 1_048_576


MOUSE_MODES = (
    TerminalMode.MOUSE_X10
    | TerminalMode.MOUSE_CLICK
    | TerminalMode.MOUSE_DRAG
    | TerminalMode.MOUSE_ANY
)


class Scrollback(NamedTuple):
    """The part in view: rows `offset` .. `offset + rows` of `total`, the newest last."""

    total: int
    offset: int
    rows: int

    @property
    def back(self) -> int:
        """How many rows the view is scrolled back; 0 at the bottom."""
        return max(0, self.total - self.offset - self.rows)


class Reading(NamedTuple):
    """The reader moves through the screen and the scrollback; the cursor is the reader's."""

    marking: bool = False
    """Moving selects."""
    matches: int = 0
    """Number of matches."""
    match: int = 0
    """The current match, the newest is 1; 0: none."""


class Step(IntEnum):
    """What a reader may do."""

    LEFT = 1
    RIGHT = 2
    UP = 3
    DOWN = 4
    NEXT_WORD = 5
    PREVIOUS_WORD = 6
    WORD_END = 7
    LINE_START = 8
    LINE_TEXT = 9
    LINE_END = 10
    PAGE_UP = 11
    PAGE_DOWN = 12
    HALF_UP = 13
    HALF_DOWN = 14
    OLDEST = 15
    NEWEST = 16
    VIEW_TOP = 17
    VIEW_MIDDLE = 18
    VIEW_BOTTOM = 19
    MARK_CELLS = 20
    MARK_WORD = 21
    MARK_LINES = 22
    UNMARK = 23
    SWAP = 24
    NEXT_MATCH = 25
    PREVIOUS_MATCH = 26
    NEXT_LINK = 27
    PREVIOUS_LINK = 28
    LINES_UP = 29
    LINES_DOWN = 30


@dataclass(frozen=True, slots=True)
class State:
    """The state of a screen besides its rows."""

    cols: int
    rows: int
    cursor: CursorPosition
    modes: TerminalMode
    scrollback: Scrollback
    title: str
    bells: int
    reading: Reading | None = None


class SelectionKind(IntEnum):
    """The unit that a press selects; dragging continues by cells."""

    CELL = 0
    WORD = 1
    LINE = 2


LIMIT = 1 << 20
CHUNK = 32 << 10


@dataclass(slots=True)
class OutputChunk:
    """Some output. `answer`: the program still waits for replies to its queries."""

    data: bytes
    answer: bool


@dataclass(frozen=True, slots=True)
class Resize:
    """The size from here on."""

    cols: int
    rows: int


Entry = OutputChunk | Resize


class OutputHistory:
    """At most 1 MiB of output with the sizes it was written for; the oldest goes first."""

    def __init__(self, cols: int, rows: int) -> None:
        self.start = Resize(cols, rows)
        """The size at the oldest entry kept."""
        self.size = self.start
        self.trimmed = False
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._dropped = 0

    def add(self, data: bytes, *, answer: bool) -> list[OutputChunk]:
        """Keep output; return it in chunks of at most 32 KiB."""
        chunks = [OutputChunk(data[at : at + CHUNK], answer) for at in range(0, len(data), CHUNK)]
        for chunk in chunks:
            self._entries.append(chunk)
            self._bytes += len(chunk.data)
        self._trim()
        return chunks

    def resize(self, cols: int, rows: int) -> None:
        """Keep a change of size."""
        self.size = Resize(cols, rows)
        self._entries.append(self.size)

    def _trim(self) -> None:
        while self._bytes > LIMIT:
            match self._entries.popleft():
                case Resize() as size:
                    self.start = size
                case OutputChunk(data=data):
                    self._bytes -= len(data)
                    self.trimmed = True
            self._dropped += 1

    def since(self, place: int) -> tuple[list[Entry], int]:
        """Return the entries kept from a place on (0 is the first ever), and the place after them."""
        skipped = max(0, place - self._dropped)
        return list(islice(self._entries, skipped, None)), self._dropped + len(self._entries)


def restore(modes: TerminalMode) -> bytes:
    """Set the modes that the program may have set in output no longer kept."""
    pairs = (
        (TerminalMode.ALTERNATE_SCREEN, 1049),
        (TerminalMode.CURSOR_KEYS, 1),
        (TerminalMode.KEYPAD, 66),
        (TerminalMode.BRACKETED_PASTE, 2004),
        (TerminalMode.FOCUS_EVENTS, 1004),
        (TerminalMode.MOUSE_X10, 9),
        (TerminalMode.MOUSE_CLICK, 1000),
        (TerminalMode.MOUSE_DRAG, 1002),
        (TerminalMode.MOUSE_ANY, 1003),
        (TerminalMode.MOUSE_SGR, 1006),
        (TerminalMode.MOUSE_UTF8, 1005),
        (TerminalMode.MOUSE_URXVT, 1015),
        (TerminalMode.MOUSE_PIXELS, 1016),
        (TerminalMode.BACKARROW, 67),
    )
    private = b"".join(b"\x1b[?%dh" % number for mode, number in pairs if modes & mode)
    new_line = b"\x1b[20h" if modes & TerminalMode.NEW_LINE else b""
    key_mode = b"\x1b[>4;1m" if modes & TerminalMode.SOME_KEYS else b""
    key_mode = b"\x1b[>4;2m" if modes & TerminalMode.OTHER_KEYS else key_mode
    return private + new_line + key_mode
