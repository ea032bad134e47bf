"""`GhosttyCore`: the emulator core on libghostty-vt, through pyghostty. Only for the child process.

The library can abort on hostile bytes, so nothing in the cockpit's own process imports this.
"""

from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import (
    MAX_COLS,
    MAX_ROWS,
    MIN_COLS,
    MIN_ROWS,
    SCROLLBACK_LINES,
    Cursor,
    Mode,
    Rgb,
    Row,
    Scrollback,
    SelectionKind,
    State,
)
from quarterdeck.tui.terminal.ghostty_rows import RowReader, check_layout
from quarterdeck.tui.terminal.ghostty_selection import Selector

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib

ffi.cdef(
    "typedef struct { int tag; intptr_t delta; uint64_t _pad; } QuarterdeckScroll;", override=True
)

_CELL_PIXELS = (8, 16)
_TITLE_BYTES = 1024
_EXTENDED_POSITION = b"\x1b[?6n"
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
)
_SYNCHRONIZED = 2026


def clamp(cols: int, rows: int) -> tuple[int, int]:
    """The nearest size that the core is given."""
    return min(max(cols, MIN_COLS), MAX_COLS), min(max(rows, MIN_ROWS), MAX_ROWS)


class GhosttyCore:
    """One terminal. See `core.Core` for the meaning of its methods."""

    def __init__(self, cols: int, rows: int) -> None:
        cols, rows = clamp(cols, rows)
        self._terminal: Any = pyghostty.Terminal(cols, rows, SCROLLBACK_LINES)
        self._raw: Any = self._terminal._t[0]
        self._replies: list[bytes] = []
        self._waiting = 0
        self._bells = 0
        self._tail = b""
        self._full = True
        self._state = ffi.new("GhosttyRenderState*")
        pyghostty.core.check(lib.ghostty_render_state_new(ffi.NULL, self._state), "render state")
        self._rows = RowReader(self._state[0])
        self._selector = Selector(self._raw)
        self._mode = ffi.new("GhosttyTerminalModeConfig*")
        self._cursor = ffi.new("GhosttyRenderStateCursor*")
        self._cursor.size = ffi.sizeof("GhosttyRenderStateCursor")
        self._callbacks = self._connect()

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
        out.cell_width, out.cell_height = _CELL_PIXELS
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
        while (end := self._extended_position_end(data, start)) > 0:
            self._terminal.feed(data[start:end])
            x, y = self._terminal.cursor
            self._reply(b"\x1b[?%d;%dR" % (y + 1, x + 1))
            self._tail = b""
            start = end
        rest = data[start:]
        self._terminal.feed(rest)
        self._tail = (self._tail + rest)[1 - len(_EXTENDED_POSITION) :]

    def _extended_position_end(self, data: bytes, start: int) -> int:
        """Where the next DECXCPR in `data` ends, which the library leaves unanswered; 0: none.

        It may have begun at the end of what was fed before.
        """
        if self._tail and start == 0:
            joined = self._tail + data[: len(_EXTENDED_POSITION) - 1]
            found = joined.find(_EXTENDED_POSITION)
            if found >= 0:
                return found + len(_EXTENDED_POSITION) - len(self._tail)
        found = data.find(_EXTENDED_POSITION, start)
        return found + len(_EXTENDED_POSITION) if found >= 0 else 0

    def take_replies(self) -> bytes:
        replies = b"".join(self._replies)
        self._replies.clear()
        self._waiting = 0
        return replies

    def resize(self, cols: int, rows: int) -> None:
        size = clamp(cols, rows)
        if size != self._terminal.size:
            self._terminal.resize(*size, *_CELL_PIXELS)

    def held(self) -> bool:
        return self._is_set(_SYNCHRONIZED)

    def take_rows(self) -> list[tuple[int, Row]]:
        pyghostty.core.check(
            lib.ghostty_render_state_update(self._state[0], self._raw), "render update"
        )
        dirty = ffi.new("GhosttyRenderStateDirty*")
        lib.ghostty_render_state_get(self._state[0], lib.GHOSTTY_RENDER_STATE_DATA_DIRTY, dirty)
        full = self._full or dirty[0] == lib.GHOSTTY_RENDER_STATE_DIRTY_FULL
        self._full = False
        if not full and dirty[0] == lib.GHOSTTY_RENDER_STATE_DIRTY_FALSE:
            return []
        rows = self._rows.read(full, self._selector.active)
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
        )

    def _read_cursor(self) -> Cursor:
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

    def set_colors(self, foreground: Rgb, background: Rgb) -> None:
        options = (
            (lib.GHOSTTY_TERMINAL_OPT_COLOR_FOREGROUND, foreground),
            (lib.GHOSTTY_TERMINAL_OPT_COLOR_BACKGROUND, background),
        )
        for option, (r, g, b) in options:
            value = ffi.new("GhosttyColorRgb*", {"r": r, "g": g, "b": b})
            lib.ghostty_terminal_set(self._raw, option, value)

    def close(self) -> None:
        self._selector.close()
        self._rows.close()
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
