"""The terminal emulator on libghostty-vt, through pyghostty. Only for the child process.

The library can abort on hostile bytes, so nothing in the cockpit's own process imports this.
"""

import re
from typing import Any

import pyghostty

from quarterdeck.tui.terminal.core import (
    CELL_PIXELS,
    CLIPBOARD_BYTES,
    MAX_COLS,
    MAX_ROWS,
    MIN_COLS,
    MIN_ROWS,
    SCROLLBACK_CELL_BYTES,
    SCROLLBACK_LINES,
    SCROLLBACK_ROW_BYTES,
    CursorPosition,
    Rgb,
    Row,
    Scrollback,
    SelectionKind,
    State,
    Step,
    TerminalMode,
)
from quarterdeck.tui.terminal.ghostty_grid import Grid, RowReader, check_layout, sized
from quarterdeck.tui.terminal.ghostty_reader import GhosttyReader
from quarterdeck.tui.terminal.ghostty_selection import Links, Selector
from quarterdeck.tui.terminal.kitty import modes_of, truthful

ffi: Any = pyghostty.ffi
lib: Any = pyghostty.lib


class Clipboard:
    """One terminal's clipboard offers. Requests to read the clipboard are never answered."""

    def __init__(self, terminal: Any) -> None:
        self._offered: str | None = None
        limit = ffi.new("size_t*", CLIPBOARD_BYTES)
        lib.ghostty_terminal_set(
            terminal, lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE_MAX_BYTES, limit
        )
        self._callback = ffi.callback("GhosttyTerminalClipboardWriteFn", self._offer)
        lib.ghostty_terminal_set(terminal, lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE, self._callback)

    def _offer(self, _terminal: Any, _data: Any, write: Any) -> None:
        for number in range(write.contents_len):
            content = write.contents[number]
            mime = _text(content.mime)
            if mime.startswith("text/plain"):
                self._offered = _text(content.data)
        if write.reply:
            reply = sized("GhosttyClipboardWriteReply")
            reply.result = lib.GHOSTTY_CLIPBOARD_WRITE_RESULT_DENIED
            write.reply(write, reply)

    def take(self) -> str | None:
        """Return the newest offer since the last call."""
        offered, self._offered = self._offered, None
        return offered


def _text(string: Any) -> str:
    if not string.len:
        return ""
    raw: bytes = ffi.buffer(string.ptr, min(string.len, CLIPBOARD_BYTES))[:]
    return raw.decode("utf-8", "replace")


_CTRL = 1 << 1
_DISTINCT_CTRL_A = b"\x1b[27;5;97~"
"""Ctrl+A for a program that requested it; else it is one control character."""


class OtherKeys:
    """Reads `modifyOtherKeys` of one terminal: which keys its program wants distinguished.

    The library keeps it where only its own key encoder can read it. So the encoder is set up from
    the terminal and queried for one key that differs.
    """

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._encoder = ffi.new("GhosttyKeyEncoder*")
        self._event = ffi.new("GhosttyKeyEvent*")
        pyghostty.core.check(lib.ghostty_key_encoder_new(ffi.NULL, self._encoder), "key encoder")
        pyghostty.core.check(lib.ghostty_key_event_new(ffi.NULL, self._event), "key event")
        self._letter = ffi.new("char[]", b"a")
        self._typed = ffi.new("char[32]")
        self._length = ffi.new("size_t*")
        self._no_kitty = ffi.new("uint8_t*", 0)
        event = self._event[0]
        lib.ghostty_key_event_set_action(event, lib.GHOSTTY_KEY_ACTION_PRESS)
        lib.ghostty_key_event_set_key(event, lib.GHOSTTY_KEY_A)
        lib.ghostty_key_event_set_mods(event, _CTRL)
        lib.ghostty_key_event_set_utf8(event, self._letter, 1)
        lib.ghostty_key_event_set_unshifted_codepoint(event, ord("a"))

    @property
    def wanted(self) -> bool:
        """Whether the program requested `modifyOtherKeys` 2."""
        encoder, length = self._encoder[0], self._length
        lib.ghostty_key_encoder_setopt_from_terminal(encoder, self._terminal)
        # The kitty protocol would take precedence; its flags are read for themselves.
        kitty = lib.GHOSTTY_KEY_ENCODER_OPT_KITTY_FLAGS
        lib.ghostty_key_encoder_setopt(encoder, kitty, self._no_kitty)
        lib.ghostty_key_encoder_encode(encoder, self._event[0], self._typed, 32, length)
        return bool(ffi.buffer(self._typed, length[0])[:] == _DISTINCT_CTRL_A)

    def close(self) -> None:
        """Free the library's objects."""
        lib.ghostty_key_event_free(self._event[0])
        lib.ghostty_key_encoder_free(self._encoder[0])


ffi.cdef(
    "typedef struct { int tag; intptr_t delta; uint64_t _pad; } QuarterdeckScroll;", override=True
)

_TITLE_BYTES = 1024
_NO_LIMIT = 1 << 31
_SOME_KEYS = b"\x1b[>4;1m"
_COMMAND_ENDED = b"\x1b]133;D"
_NO_KITTY = b"\x1b[<99u"
_OWN = re.compile(
    rb"\x1b(?:\[(?:\?6n|!p|>4(?:;[0-9]?)?m|>4n|>m)|\]133;D(?:;[0-9]{1,3})?(?:\x07|\x1b\\)|c)"
)
"""DECXCPR and DECSTR, which the library does not support; the sequences of `modifyOtherKeys`, of which
it supports level 2 only; and the mark of a shell for the end of a command: the program may have died
without popping its keyboard flags, and Ctrl+C would be lost on the shell."""
_REPEAT = re.compile(rb"\x1b[\x00-\x17\x19\x1c-\x1f]*\[([0-9;\x00-\x17\x19\x1c-\x1f\x7f]{2,})b")
"""REP with a count of two digits or more; control characters may be anywhere in a sequence."""
_BEGUN_REPEAT = re.compile(
    rb"\x1b[\x00-\x17\x19\x1c-\x1f]*(?:\[[0-9;\x00-\x17\x19\x1c-\x1f\x7f]*)?\Z"
)
"""What may become REP with the next output. It waits for that: REP in two pieces would not be found."""
_LONGEST_BEGUN, _CANCEL = 1024, b"\x18"
"""A longer one is canceled."""
_OWN_LENGTH = len(_COMMAND_ENDED) + len(b";255\x1b\\")
_SOFT_RESET = (
    b"\x1b[?25h\x1b[?6l\x1b[4l\x1b[?1l\x1b>\x1b[?7h\x1b[?69l\x1b[r\x1b[m"
    b'\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[0"q\x1b[>4m\x1b[H\x1b7'
)
"""Cursor shown, origin, insertion and application keys off, wrapping on, no margins, plain text,
ASCII, nothing protected, keys not distinguished, home saved."""
_REPLIES_KEPT = 64 << 10

_MODES = (
    (1, TerminalMode.CURSOR_KEYS),
    (66, TerminalMode.KEYPAD),
    (67, TerminalMode.BACKARROW),
    (2004, TerminalMode.BRACKETED_PASTE),
    (1004, TerminalMode.FOCUS_EVENTS),
    (9, TerminalMode.MOUSE_X10),
    (1000, TerminalMode.MOUSE_CLICK),
    (1002, TerminalMode.MOUSE_DRAG),
    (1003, TerminalMode.MOUSE_ANY),
    (1006, TerminalMode.MOUSE_SGR),
    (1007, TerminalMode.ALTERNATE_SCROLL),
    (1005, TerminalMode.MOUSE_UTF8),
    (1015, TerminalMode.MOUSE_URXVT),
    (1016, TerminalMode.MOUSE_PIXELS),
    (20 | 1 << 15, TerminalMode.NEW_LINE),
)
"""By number; an ANSI mode, which is not a private DEC mode, has the highest bit set."""
_SYNCHRONIZED = 2026
_CLUSTERS = 2027
"""What a user sees as one character is one in the grid: a family, a flag, a thumb with its skin."""


def clamp(cols: int, rows: int) -> tuple[int, int]:
    """Return the nearest size that a core supports."""
    return min(max(cols, MIN_COLS), MAX_COLS), min(max(rows, MIN_ROWS), MAX_ROWS)


class GhosttyCore:
    """A terminal emulator without a screen. Not thread-safe; owned by one process."""

    def __init__(self, cols: int, rows: int) -> None:
        cols, rows = clamp(cols, rows)
        self._terminal: Any = pyghostty.Terminal(cols, rows, _NO_LIMIT)
        self._raw: Any = self._terminal._t[0]
        self._limit_scrollback(cols)
        self._replies: list[bytes] = []
        self._waiting = 0
        self._bells = 0
        self._tail = b""
        self._begun = b""
        self._some_keys = False
        self._full = True
        self._state = ffi.new("GhosttyRenderState*")
        pyghostty.core.check(lib.ghostty_render_state_new(ffi.NULL, self._state), "render state")
        self._rows = RowReader(self._state[0])
        grid = Grid(self._raw)
        self._grid = grid
        self._selector = Selector(grid)
        self._links = Links(grid)
        self._reader = GhosttyReader(grid, self._selector, self._links, self.scroll, self._view)
        self._clipboard = Clipboard(self._raw)
        self._other_keys = OtherKeys(self._raw)
        self._flags = ffi.new("uint8_t*")
        self._mode = ffi.new("GhosttyTerminalModeConfig*")
        self._cursor = ffi.new("GhosttyRenderStateCursor*")
        self._cursor.size = ffi.sizeof("GhosttyRenderStateCursor")
        self._join_clusters()
        self._refuse_images()
        self._callbacks = self._connect()

    def _join_clusters(self) -> None:
        """Join clusters from the start and after every reset; a program can still change that."""
        self._mode.mode, self._mode.value = _CLUSTERS, True
        default = lib.GHOSTTY_TERMINAL_OPT_MODE_DEFAULT
        pyghostty.core.check(lib.ghostty_terminal_set(self._raw, default, self._mode), "clusters")

    def _refuse_images(self) -> None:
        """Answer and store nothing of kitty's graphics protocol: no image is ever drawn here."""
        option = lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_STORAGE_LIMIT
        code = lib.ghostty_terminal_set(self._raw, option, ffi.new("uint64_t*", 0))
        pyghostty.core.check(code, "images")

    def _connect(self) -> list[Any]:
        """Register the library's callbacks; the list keeps them alive."""
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
        data = truthful(data)
        # A program that asks without reading would fill the memory; terminals drop here.
        if self._waiting + len(data) > _REPLIES_KEPT:
            return
        self._waiting += len(data)
        self._replies.append(data)

    def feed(self, data: bytes) -> None:
        """Process output of the program."""
        data = self._begun + data
        last = data.rfind(b"\x1b")
        self._begun = b""
        if last >= 0 and _BEGUN_REPEAT.match(data, last):
            data, begun = data[:last], data[last:]
            if len(begun) <= _LONGEST_BEGUN:
                self._begun = begun
            else:
                data += _CANCEL
        if b"b" in data:
            data = _REPEAT.sub(self._bounded_repeat, data)
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

    def _bounded_repeat(self, match: re.Match[bytes]) -> bytes:
        """Return REP for at most one line: each one may ask for 65,535 characters."""
        digits, _, more = re.sub(rb"[^0-9;]", b"", match[1]).lstrip(b"0").partition(b";")
        if more.strip(b";"):
            return match[0]  # not REP
        count = int(digits or b"1") if len(digits) < 6 else MAX_COLS
        return b"\x1b[%db" % max(1, min(count, self._terminal.size[0]))

    def _obey(self, sequence: bytes) -> None:
        """Handle a sequence that the library does not."""
        match sequence:
            case b"\x1b[?6n":
                x, y = self._terminal.cursor
                self._reply(b"\x1b[?%d;%dR" % (y + 1, x + 1))
            case b"\x1b[!p":
                self._soft_reset()
                self._some_keys = False
            case _ if sequence.startswith(_COMMAND_ENDED):
                self._terminal.feed(_NO_KITTY)
            case _:
                self._some_keys = sequence == _SOME_KEYS

    def _next_own(self, data: bytes, start: int) -> tuple[bytes, int] | None:
        """Return the next sequence that the library does not handle, and where in `data` it ends.

        It may have started at the end of the previous data.
        """
        if self._tail and start == 0:
            match = _OWN.search(self._tail + data[: _OWN_LENGTH - 1])
            if match is not None:
                return match.group(), match.end() - len(self._tail)
        match = _OWN.search(data, start)
        return None if match is None else (match.group(), match.end())

    def _soft_reset(self) -> None:
        """Reset as DECSTR does; the cursor stays where it was."""
        x, y = self._terminal.cursor
        self._terminal.feed(_SOFT_RESET + _NO_KITTY + b"\x1b[%d;%dH" % (y + 1, x + 1))

    def take_replies(self) -> bytes:
        """Return the replies to the program's queries since the last call, to be typed into it."""
        replies = b"".join(self._replies)
        self._replies.clear()
        self._waiting = 0
        return replies

    def resize(self, cols: int, rows: int) -> None:
        """Change the size, clamped to 20..500 x 5..200; the primary screen is reflowed."""
        size = clamp(cols, rows)
        if size != self._terminal.size:
            self._terminal.resize(*size, *CELL_PIXELS)
            self._limit_scrollback(size[0])

    def _limit_scrollback(self, cols: int) -> None:
        """Limit lines by their bytes: the library then overwrites the oldest with new ones.

        With a limit of lines it returns the oldest to the system and requests new ones, which costs
        three times as much as everything else that it does with numbered lines.
        """
        room = SCROLLBACK_LINES * (SCROLLBACK_ROW_BYTES + cols * SCROLLBACK_CELL_BYTES)
        limit = ffi.new("size_t*", room)
        lib.ghostty_terminal_set(self._raw, lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, limit)

    def held(self) -> bool:
        """Return whether the program has paused rendering (synchronized output)."""
        return self._is_set(_SYNCHRONIZED)

    def _view(self) -> tuple[int, Scrollback]:
        return self._terminal.size[0], self._scrollback()

    def take_rows(self) -> list[tuple[int, Row]]:
        """Return rows in view that changed since the last call, with their place from 0."""
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
        """Make every row count as changed."""
        self._full = True

    def state(self) -> State:
        """Return the rest of the visible state, as of the last `take_rows`."""
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

    def _read_cursor(self) -> CursorPosition:
        if self._reader.active:
            return CursorPosition(*self._reader.cursor)
        return self._program_cursor()

    def _program_cursor(self) -> CursorPosition:
        """Return the cursor as of the last `take_rows`."""
        cursor = self._cursor
        lib.ghostty_render_state_get(self._state[0], lib.GHOSTTY_RENDER_STATE_DATA_CURSOR, cursor)
        if not cursor.viewport_has_value:
            return CursorPosition(0, 0, False)
        shape = int(cursor.visual_style)
        return CursorPosition(
            int(cursor.viewport_x), int(cursor.viewport_y), bool(cursor.visible), shape
        )

    def _is_set(self, number: int) -> bool:
        self._mode.mode = number
        lib.ghostty_terminal_get(self._raw, lib.GHOSTTY_TERMINAL_DATA_MODE, self._mode)
        return bool(self._mode.value)

    def _modes(self) -> TerminalMode:
        modes = TerminalMode.NONE
        for number, mode in _MODES:
            if self._is_set(number):
                modes |= mode
        screen = self._terminal.get("active_screen", "GhosttyTerminalScreen")
        if screen == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE:
            modes |= TerminalMode.ALTERNATE_SCREEN
        lib.ghostty_terminal_get(
            self._raw, lib.GHOSTTY_TERMINAL_DATA_KITTY_KEYBOARD_FLAGS, self._flags
        )
        modes |= modes_of(self._flags[0])
        if self._other_keys.wanted:
            modes |= TerminalMode.OTHER_KEYS
        elif self._some_keys:
            modes |= TerminalMode.SOME_KEYS
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
        """Move the part in view: negative is back."""
        self._scroll(lib.GHOSTTY_SCROLL_VIEWPORT_DELTA, lines)

    def scroll_to_bottom(self) -> None:
        """Show the newest rows again."""
        self._scroll(lib.GHOSTTY_SCROLL_VIEWPORT_BOTTOM, 0)

    def _scroll(self, tag: int, lines: int) -> None:
        # A union cannot be passed by value through cffi; a struct of the same layout can.
        call: Any = ffi.cast(
            "void(*)(GhosttyTerminal, QuarterdeckScroll)",
            ffi.addressof(lib, "ghostty_terminal_scroll_viewport"),
        )
        call(self._raw, ffi.new("QuarterdeckScroll*", {"tag": tag, "delta": lines})[0])

    def select_from(self, x: int, y: int, kind: SelectionKind) -> None:
        """Start a selection at a cell in view."""
        self._selector.begin(x, y, kind)
        self._full = True

    def select_to(self, x: int, y: int) -> None:
        """Extend the selection to a cell in view."""
        self._selector.extend(x, y)
        self._full = True

    def clear_selection(self) -> None:
        """Clear the selection."""
        self._selector.clear()
        self._full = True

    def selected_text(self) -> str:
        """Return the selected text, wrapped lines joined, trailing blanks cut; empty without a selection."""
        return self._selector.text()

    def start_reading(self) -> None:
        """Note that the reader takes the cursor; the part in view stays where it is, whatever is printed."""
        cursor = self._program_cursor()
        rows = self._scrollback().rows
        self._reader.start(cursor.x, cursor.y if cursor.visible else rows - 1)
        self._full = True

    def stop_reading(self) -> None:
        """Note that the cursor is the program's again, and the newest rows are shown."""
        self._reader.stop()
        self.scroll_to_bottom()
        self._full = True

    def read(self, step: Step) -> None:
        """Move the reader, or mark from where the reader is."""
        if self._reader.active:
            self._reader.read(step)
            self._full = True

    def find(self, text: str) -> None:
        """Mark every place of a text, and move the reader to the newest before the cursor.

        ASCII letters match both cases. An empty text ends the search.
        """
        if self._reader.active:
            self._reader.find(text)
            self._full = True

    def link_at(self, x: int, y: int) -> str:
        """Return the link at a cell in view: one of the program's, or an address in the text."""
        ref = self._grid.ref(x, y)
        return "" if ref is None else self._links.at(ref)

    def link_here(self) -> str:
        """Return the link at the reader's position."""
        return self._reader.link() if self._reader.active else ""

    def take_clipboard(self) -> str | None:
        """Return the newest text that the program offered for the clipboard since the last call."""
        return self._clipboard.take()

    def set_colors(self, foreground: Rgb, background: Rgb) -> None:
        """Set the theme's colors, which programs may ask for."""
        options = (
            (lib.GHOSTTY_TERMINAL_OPT_COLOR_FOREGROUND, foreground),
            (lib.GHOSTTY_TERMINAL_OPT_COLOR_BACKGROUND, background),
        )
        for option, (r, g, b) in options:
            value = ffi.new("GhosttyColorRgb*", {"r": r, "g": g, "b": b})
            lib.ghostty_terminal_set(self._raw, option, value)

    def close(self) -> None:
        """Free the core."""
        self._reader.stop()
        self._selector.close()
        self._rows.close()
        self._other_keys.close()
        lib.ghostty_render_state_free(self._state[0])
        self._terminal.close()


def probe() -> None:
    """Check once that the memory layout of the library is as expected.

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
