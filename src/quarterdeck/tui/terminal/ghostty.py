"""`GhosttyCore`: the emulator core on libghostty-vt, through pyghostty. Only for the child process.

The library can abort on hostile bytes, so nothing in the cockpit's own process imports this.
"""

import re
from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import (
    CELL_PIXELS,
    MAX_COLS,
    MAX_ROWS,
    MIN_COLS,
    MIN_ROWS,
    SCROLLBACK_CELL_BYTES,
    SCROLLBACK_LINES,
    SCROLLBACK_ROW_BYTES,
    Cursor,
    Mode,
    Rgb,
    Row,
    Scrollback,
    SelectionKind,
    State,
    Step,
)
from quarterdeck.tui.terminal.ghostty_clipboard import Clipboard
from quarterdeck.tui.terminal.ghostty_grid import Grid
from quarterdeck.tui.terminal.ghostty_keys import OtherKeys
from quarterdeck.tui.terminal.ghostty_links import Links
from quarterdeck.tui.terminal.ghostty_reader import Reader
from quarterdeck.tui.terminal.ghostty_rows import RowReader, check_layout
from quarterdeck.tui.terminal.ghostty_selection import Selector

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

ffi.cdef(
    "typedef struct { int tag; intptr_t delta; uint64_t _pad; } QuarterdeckScroll;", override=True
)

_TITLE_BYTES = 1024
_NO_LIMIT = 1 << 31
_SOME_KEYS = b"\x1b[>4;1m"
_OWN = re.compile(rb"\x1b(?:\[(?:\?6n|!p|>4(?:;[0-9]?)?m|>4n|>m)|c)")
"""DECXCPR and DECSTR, which the library does not know; and what `modifyOtherKeys` is set and reset
by, of which it knows level 2 alone."""
_OWN_LENGTH = len(_SOME_KEYS)
_SOFT_RESET = (
    b"\x1b[?25h\x1b[?6l\x1b[4l\x1b[?1l\x1b>\x1b[?7h\x1b[?69l\x1b[r\x1b[m"
    b'\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[0"q\x1b[>4m\x1b[H\x1b7'
)
"""Cursor shown, origin, insertion and application keys off, wrapping on, no margins, plain text,
ASCII, nothing protected, keys not told apart, home saved."""
_REPLIES_KEPT = 64 << 10

_MODES = (
    (1, Mode.CURSOR_KEYS),
    (66, Mode.KEYPAD),
    (67, Mode.BACKARROW),
    (2004, Mode.BRACKETED_PASTE),
    (1004, Mode.FOCUS_EVENTS),
    (9, Mode.MOUSE_X10),
    (1000, Mode.MOUSE_CLICK),
    (1002, Mode.MOUSE_DRAG),
    (1003, Mode.MOUSE_ANY),
    (1006, Mode.MOUSE_SGR),
    (1007, Mode.ALTERNATE_SCROLL),
    (1005, Mode.MOUSE_UTF8),
    (1015, Mode.MOUSE_URXVT),
    (1016, Mode.MOUSE_PIXELS),
    (20 | 1 << 15, Mode.NEW_LINE),
)
"""By number; an ANSI mode, which is no private one of DEC, has the highest bit set."""
_SYNCHRONIZED = 2026
_CLUSTERS = 2027
"""What is one character to a person is one in the grid: a family, a flag, a thumb with its skin."""


def clamp(cols: int, rows: int) -> tuple[int, int]:
    """The nearest size that the core is given."""
    return min(max(cols, MIN_COLS), MAX_COLS), min(max(rows, MIN_ROWS), MAX_ROWS)


class GhosttyCore:
    """One terminal. See `core.Core` for the meaning of its methods."""

    def __init__(self, cols: int, rows: int) -> None:
        cols, rows = clamp(cols, rows)
        self._terminal: Any = pyghostty.Terminal(cols, rows, _NO_LIMIT)
        self._raw: Any = self._terminal._t[0]
        self._limit_scrollback(cols)
        self._replies: list[bytes] = []
        self._waiting = 0
        self._bells = 0
        self._tail = b""
        self._some_keys = False
        self._full = True
        self._state = ffi.new("GhosttyRenderState*")
        pyghostty.core.check(lib.ghostty_render_state_new(ffi.NULL, self._state), "render state")
        self._rows = RowReader(self._state[0])
        grid = Grid(self._raw)
        self._grid = grid
        self._selector = Selector(grid)
        self._links = Links(grid)
        self._reader = Reader(grid, self._selector, self._links, self.scroll, self._view)
        self._clipboard = Clipboard(self._raw)
        self._other_keys = OtherKeys(self._raw)
        self._mode = ffi.new("GhosttyTerminalModeConfig*")
        self._cursor = ffi.new("GhosttyRenderStateCursor*")
        self._cursor.size = ffi.sizeof("GhosttyRenderStateCursor")
        self._join_clusters()
        self._callbacks = self._connect()

    def _join_clusters(self) -> None:
        """From the start and after every reset; a program can still say otherwise."""
        self._mode.mode, self._mode.value = _CLUSTERS, True
        default = lib.GHOSTTY_TERMINAL_OPT_MODE_DEFAULT
        pyghostty.core.check(lib.ghostty_terminal_set(self._raw, default, self._mode), "clusters")

    def _connect(self) -> list[Any]:
        """Registers what the library calls; the list keeps the callbacks alive."""
        self._terminal.on_reply(self._reply)
        bell = ffi.callback("GhosttyTerminalBellFn", self._ring)
        size = ffi.callback("GhosttyTerminalSizeFn", self._size)
        lib.ghostty_terminal_set(self._raw, lib.GHOSTTY_TERMINAL_OPT_BELL, bell)
        lib.ghostty_terminal_set(self._raw, lib.GHOSTTY_TERMINAL_OPT_SIZE, size)
        return [bell, size]

    def _ring(self, _terminal: Any, _data: Any) -> None:
        self._bells += 1

    def _size(self, _terminal: Any, _data: Any, out: Any) -> bool:
        out.columns, out.rows = self._terminal.size
        out.cell_width, out.cell_height = CELL_PIXELS
        return True

    def _reply(self, data: bytes) -> None:
        # The kitty keyboard's flags are not answered: keys are sent as xterm does.
        if data.startswith(b"\x1b[?") and data.endswith(b"u"):
            return
        # A program that asks without reading would fill the memory; terminals drop here.
        if self._waiting + len(data) > _REPLIES_KEPT:
            return
        self._waiting += len(data)
        self._replies.append(data)

    def feed(self, data: bytes) -> None:
        start = 0
        while (own := self._next_own(data, start)) is not None:
            sequence, end = own
            self._terminal.feed(data[start:end])
            self._obey(sequence)
            self._tail = b""
            start = end
        rest = data[start:]
        self._terminal.feed(rest)
        self._tail = (self._tail + rest)[1 - _OWN_LENGTH :]

    def _obey(self, sequence: bytes) -> None:
        """What the library left undone."""
        match sequence:
            case b"\x1b[?6n":
                x, y = self._terminal.cursor
                self._reply(b"\x1b[?%d;%dR" % (y + 1, x + 1))
            case b"\x1b[!p":
                self._soft_reset()
                self._some_keys = False
            case _:
                self._some_keys = sequence == _SOME_KEYS

    def _next_own(self, data: bytes, start: int) -> tuple[bytes, int] | None:
        """The next sequence that the library leaves undone, and where in `data` it ends.

        It may have begun at the end of what was fed before.
        """
        if self._tail and start == 0:
            found = _OWN.search(self._tail + data[: _OWN_LENGTH - 1])
            if found is not None:
                return found.group(), found.end() - len(self._tail)
        found = _OWN.search(data, start)
        return None if found is None else (found.group(), found.end())

    def _soft_reset(self) -> None:
        """DECSTR, after which the cursor is where it was."""
        x, y = self._terminal.cursor
        self._terminal.feed(_SOFT_RESET + b"\x1b[%d;%dH" % (y + 1, x + 1))

    def take_replies(self) -> bytes:
        replies = b"".join(self._replies)
        self._replies.clear()
        self._waiting = 0
        return replies

    def resize(self, cols: int, rows: int) -> None:
        size = clamp(cols, rows)
        if size != self._terminal.size:
            self._terminal.resize(*size, *CELL_PIXELS)
            self._limit_scrollback(size[0])

    def _limit_scrollback(self, cols: int) -> None:
        """Lines are limited by their bytes: the library then writes new lines where the oldest were.

        A limit of lines makes it give the oldest back to the system and ask for new ones, which costs
        three times as much as everything else that it does with numbered lines.
        """
        room = SCROLLBACK_LINES * (SCROLLBACK_ROW_BYTES + cols * SCROLLBACK_CELL_BYTES)
        limit = ffi.new("size_t*", room)
        lib.ghostty_terminal_set(self._raw, lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, limit)

    def held(self) -> bool:
        return self._is_set(_SYNCHRONIZED)

    def _view(self) -> tuple[int, Scrollback]:
        return self._terminal.size[0], self._scrollback()

    def take_rows(self) -> list[tuple[int, Row]]:
        if self._reader.active:
            self._reader.settle()
        pyghostty.core.check(
            lib.ghostty_render_state_update(self._state[0], self._raw), "render update"
        )
        dirty = ffi.new("GhosttyRenderStateDirty*")
        lib.ghostty_render_state_get(self._state[0], lib.GHOSTTY_RENDER_STATE_DATA_DIRTY, dirty)
        marks = self._reader.marks()
        full = self._full or bool(marks) or dirty[0] == lib.GHOSTTY_RENDER_STATE_DIRTY_FULL
        self._full = False
        if not full and dirty[0] == lib.GHOSTTY_RENDER_STATE_DIRTY_FALSE:
            return []
        rows = self._rows.read(full, self._selector.active, marks)
        lib.ghostty_render_state_clean(self._state[0])
        return rows

    def invalidate(self) -> None:
        self._full = True

    def state(self) -> State:
        cols, rows = self._terminal.size
        return State(
            cols,
            rows,
            self._read_cursor(),
            self._modes(),
            self._scrollback(),
            self._title(),
            self._bells,
            self._reader.reading,
        )

    def _read_cursor(self) -> Cursor:
        if self._reader.active:
            return Cursor(*self._reader.cursor)
        return self._program_cursor()

    def _program_cursor(self) -> Cursor:
        """As of the last `take_rows`."""
        cursor = self._cursor
        lib.ghostty_render_state_get(self._state[0], lib.GHOSTTY_RENDER_STATE_DATA_CURSOR, cursor)
        if not cursor.viewport_has_value:
            return Cursor(0, 0, False)
        shape = int(cursor.visual_style)
        return Cursor(int(cursor.viewport_x), int(cursor.viewport_y), bool(cursor.visible), shape)

    def _is_set(self, number: int) -> bool:
        self._mode.mode = number
        lib.ghostty_terminal_get(self._raw, lib.GHOSTTY_TERMINAL_DATA_MODE, self._mode)
        return bool(self._mode.value)

    def _modes(self) -> Mode:
        modes = Mode.NONE
        for number, mode in _MODES:
            if self._is_set(number):
                modes |= mode
        screen = self._terminal.get("active_screen", "GhosttyTerminalScreen")
        if screen == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE:
            modes |= Mode.ALTERNATE_SCREEN
        if self._other_keys.wanted:
            modes |= Mode.OTHER_KEYS
        elif self._some_keys:
            modes |= Mode.SOME_KEYS
        return modes

    def _scrollback(self) -> Scrollback:
        bar = ffi.new("GhosttyTerminalScrollbar*")
        lib.ghostty_terminal_get(self._raw, lib.GHOSTTY_TERMINAL_DATA_SCROLLBAR, bar)
        return Scrollback(int(bar.total), int(bar.offset), int(bar.len))

    def _title(self) -> str:
        title = self._terminal.get("title", "GhosttyString")
        if not title.len:
            return ""
        raw: bytes = ffi.buffer(title.ptr, min(title.len, _TITLE_BYTES))[:]
        return raw.decode("utf-8", "replace")

    def scroll(self, lines: int) -> None:
        self._scroll(lib.GHOSTTY_SCROLL_VIEWPORT_DELTA, lines)

    def scroll_to_bottom(self) -> None:
        self._scroll(lib.GHOSTTY_SCROLL_VIEWPORT_BOTTOM, 0)

    def _scroll(self, tag: int, lines: int) -> None:
        # A union cannot be passed by value through cffi; a struct of the same layout can.
        call: Any = ffi.cast(
            "void(*)(GhosttyTerminal, QuarterdeckScroll)",
            ffi.addressof(lib, "ghostty_terminal_scroll_viewport"),
        )
        call(self._raw, ffi.new("QuarterdeckScroll*", {"tag": tag, "delta": lines})[0])

    def select_from(self, x: int, y: int, kind: SelectionKind) -> None:
        self._selector.begin(x, y, kind)
        self._full = True

    def select_to(self, x: int, y: int) -> None:
        self._selector.extend(x, y)
        self._full = True

    def clear_selection(self) -> None:
        self._selector.clear()
        self._full = True

    def selected_text(self) -> str:
        return self._selector.text()

    def start_reading(self) -> None:
        cursor = self._program_cursor()
        rows = self._scrollback().rows
        self._reader.start(cursor.x, cursor.y if cursor.visible else rows - 1)
        self._full = True

    def stop_reading(self) -> None:
        self._reader.stop()
        self.scroll_to_bottom()
        self._full = True

    def read(self, step: Step) -> None:
        if self._reader.active:
            self._reader.read(step)
            self._full = True

    def find(self, text: str) -> None:
        if self._reader.active:
            self._reader.find(text)
            self._full = True

    def link_at(self, x: int, y: int) -> str:
        ref = self._grid.ref(x, y)
        return "" if ref is None else self._links.at(ref)

    def link_here(self) -> str:
        return self._reader.link() if self._reader.active else ""

    def take_clipboard(self) -> str | None:
        return self._clipboard.take()

    def set_colors(self, foreground: Rgb, background: Rgb) -> None:
        options = (
            (lib.GHOSTTY_TERMINAL_OPT_COLOR_FOREGROUND, foreground),
            (lib.GHOSTTY_TERMINAL_OPT_COLOR_BACKGROUND, background),
        )
        for option, (r, g, b) in options:
            value = ffi.new("GhosttyColorRgb*", {"r": r, "g": g, "b": b})
            lib.ghostty_terminal_set(self._raw, option, value)

    def close(self) -> None:
        self._reader.stop()
        self._selector.close()
        self._rows.close()
        self._other_keys.close()
        lib.ghostty_render_state_free(self._state[0])
        self._terminal.close()


def probe() -> None:
    """Checks once that the library is read rightly.

    Raises:
        RuntimeError: it lays out its cells in an unknown way.
    """
    core = GhosttyCore(MIN_COLS, MIN_ROWS)
    core.feed("\x1b[1ma\N{CJK UNIFIED IDEOGRAPH-6F22}".encode())
    for x in (0, 1):
        cell = ffi.new("GhosttyCell*")
        lib.ghostty_grid_ref_cell(core._terminal.ref(x, 0), cell)  # pyright: ignore[reportPrivateUsage]
        check_layout(int(cell[0]))
    core.close()
