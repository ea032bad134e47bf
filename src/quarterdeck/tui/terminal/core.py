"""What an emulator core is: bytes in, rows of styled runs out. Nothing here knows a library."""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NamedTuple, Protocol

MIN_COLS, MIN_ROWS = 20, 5
"""Smaller screens are not given to a core: they make the native one abort."""
MAX_COLS, MAX_ROWS = 500, 200
CELL_PIXELS = (8, 16)
"""Told to programs that ask for pixels; there are none."""
SCROLLBACK_LINES = 10_000
SCROLLBACK_ROW_BYTES, SCROLLBACK_CELL_BYTES = 128, 16
"""Room for a line that is kept, and for each of its cells. Plain text takes half of it; the rest is
for styles, links and composed characters, which are kept beside the cells."""
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
    """Found by the reader's search."""
    MATCH_HERE = 1024
    """The found place that the reader is at."""


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


class Run(NamedTuple):
    """Neighboring cells of one look. `cells` is their width; all are one or all two cells wide.

    A grapheme of several code points is a run of its own.
    """

    text: str
    cells: int
    style: CellStyle


Row = tuple[Run, ...]
"""A row from its first cell; cells after the last run are blank in the theme's colors."""


class CursorShape(IntEnum):
    """Shape of the cursor that the program asked for."""

    BAR = 0
    BLOCK = 1
    UNDERLINE = 2
    HOLLOW = 3


class Cursor(NamedTuple):
    """Where the cursor is, from 0. Not `visible` also when it is outside the part in view."""

    x: int = 0
    y: int = 0
    visible: bool = True
    shape: int = CursorShape.BLOCK


class Mode(IntFlag):
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
    """`modifyOtherKeys` 2: keys with Ctrl or Shift are told apart from each other."""
    SOME_KEYS = 131_072
    """`modifyOtherKeys` 1: only those that have no control character of their own."""


MOUSE_MODES = Mode.MOUSE_X10 | Mode.MOUSE_CLICK | Mode.MOUSE_DRAG | Mode.MOUSE_ANY


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
    """The reader goes through the screen and what scrolled away; the cursor is the reader's."""

    marking: bool = False
    """Moving selects."""
    matches: int = 0
    """How often the text searched for was found."""
    match: int = 0
    """Which of them the reader is at, the newest is 1; 0: at none."""


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
    """What a core shows besides its rows."""

    cols: int
    rows: int
    cursor: Cursor
    modes: Mode
    scrollback: Scrollback
    title: str
    bells: int
    reading: Reading | None = None


class SelectionKind(IntEnum):
    """What a press selects; dragging goes on by cells."""

    CELL = 0
    WORD = 1
    LINE = 2


class Core(Protocol):
    """A terminal emulator without a screen. Not thread-safe; owned by one process."""

    def feed(self, data: bytes) -> None:
        """Takes output of the program."""
        ...

    def take_replies(self) -> bytes:
        """Answers to the program's queries since the last call, to be typed into it."""
        ...

    def resize(self, cols: int, rows: int) -> None:
        """Changes the size, clamped to 20..500 x 5..200; the primary screen is reflowed."""
        ...

    def held(self) -> bool:
        """Whether the program asked not to be painted just now (synchronized output)."""
        ...

    def take_rows(self) -> list[tuple[int, Row]]:
        """Rows in view that changed since the last call, with their place from 0."""
        ...

    def invalidate(self) -> None:
        """Makes every row count as changed."""
        ...

    def state(self) -> State:
        """The rest of what is shown, as of the last `take_rows`."""
        ...

    def scroll(self, lines: int) -> None:
        """Moves the part in view: negative is back."""
        ...

    def scroll_to_bottom(self) -> None:
        """Shows the newest rows again."""
        ...

    def select_from(self, x: int, y: int, kind: SelectionKind) -> None:
        """Begins a selection at a cell in view."""
        ...

    def select_to(self, x: int, y: int) -> None:
        """Extends the selection to a cell in view."""
        ...

    def clear_selection(self) -> None:
        """Selects nothing."""
        ...

    def selected_text(self) -> str:
        """The selected text, wrapped lines joined, trailing blanks cut; empty when nothing is."""
        ...

    def start_reading(self) -> None:
        """The reader takes the cursor; the part in view stays where it is, whatever is printed."""
        ...

    def stop_reading(self) -> None:
        """The cursor is the program's again, and the newest rows are shown."""
        ...

    def read(self, step: Step) -> None:
        """Moves the reader, or marks from where the reader is."""
        ...

    def find(self, text: str) -> None:
        """Marks every place of a text, and moves the reader to the newest before the cursor.

        ASCII letters are found in both cases. An empty text searches for nothing.
        """
        ...

    def link_at(self, x: int, y: int) -> str:
        """Where a cell in view leads: a link of the program's, or an address in the text."""
        ...

    def link_here(self) -> str:
        """The same for where the reader is."""
        ...

    def take_clipboard(self) -> str | None:
        """The newest text that the program offered for the clipboard since the last call."""
        ...

    def set_colors(self, foreground: Rgb, background: Rgb) -> None:
        """The theme's colors, told to programs that ask."""
        ...

    def close(self) -> None:
        """Frees the core."""
        ...
