"""Input of a terminal: keys and mouse as xterm sends them, pasted text, sizes.

The table of keys is ours and not the library's encoder: that one is in the other process, and
a key must not wait for it. Programs may request the kitty protocol (`kitty`) or `modifyOtherKeys`. What
is ambiguous is outside our control: Textual reports Alt+arrow as Escape and the arrow, and the
keypad as the plain keys.

The mouse is reported to the program when it requested that, except with Shift, which is always the
reader's; else it selects and scrolls.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from textual import events
from textual.keys import REPLACED_KEYS, key_to_character

from quarterdeck.tui.terminal.core import (
    CELL_PIXELS,
    MAX_COLS,
    MAX_ROWS,
    MIN_COLS,
    MIN_ROWS,
    MOUSE_MODES,
    SelectionKind,
    TerminalMode,
)
from quarterdeck.tui.terminal.emulator import Emulator
from quarterdeck.tui.terminal.host import TerminalSource
from quarterdeck.tui.terminal.kitty import KITTY_MODES, encode_kitty

_SHIFT, _ALT, _CTRL = 1, 2, 4
_MODIFIERS = {"shift": _SHIFT, "alt": _ALT, "meta": _ALT, "ctrl": _CTRL}

_CURSOR = {"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H"}
_FUNCTION = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_TILDE = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6,
    "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_KEYPAD = {
    "decimal": ".", "divide": "/", "multiply": "*", "subtract": "-", "add": "+",
    "equal": "=", "separator": ",",
}  # fmt: skip
_CONTROL = {
    **{chr(letter): chr(letter & 0x1F) for letter in range(ord("a"), ord("z") + 1)},
    "@": "\0", " ": "\0", "`": "\0", "2": "\0",
    "[": "\x1b", "{": "\x1b", "3": "\x1b",
    "\\": "\x1c", "|": "\x1c", "4": "\x1c",
    "]": "\x1d", "}": "\x1d", "5": "\x1d",
    "^": "\x1e", "~": "\x1e", "6": "\x1e",
    "_": "\x1f", "-": "\x1f", "/": "\x1f", "7": "\x1f",
    "?": "\x7f", "8": "\x7f",
}  # fmt: skip
_CODES = {"tab": 9, "enter": 13, "escape": 27, "backspace": 127}
_LEFT_ALONE = {("tab", _SHIFT), ("backspace", _CTRL)}
_OURS_ALONE = "-?"
"""With Ctrl they send a control character here, and nothing on X11."""


@lru_cache(maxsize=1024)
def encode_key(
    key: str, character: str | None, modes: TerminalMode = TerminalMode.NONE
) -> str | None:
    """Return what a key types into a program.

    Args:
        key: the name as Textual gives it, modifiers first ("ctrl+shift+left").
        character: the text it stands for, if any.
        modes: the modes that the program requested.

    Returns:
        The text to send, or None for a key that sends nothing (a modifier alone, a media key).
    """
    *names, base = _split(key)
    modifiers = 0
    for name in names:
        if name not in _MODIFIERS:
            return None
        modifiers |= _MODIFIERS[name]
    if base[0] == "f" and base[1:].isdigit() and 13 <= int(base[1:]) <= 24:
        # Terminals have twelve; the others are shift with one of these.
        base, modifiers = f"f{int(base[1:]) - 12}", modifiers | _SHIFT
    if modes & KITTY_MODES:
        typed = encode_kitty(base, _plain(base), modifiers, character, modes)
        return typed or _text(base, modifiers, character)
    return (
        _special(base, modifiers, modes)
        or _modified_key(base, modifiers, modes)
        or _editing(base, modifiers, modes)
        or _text(base, modifiers, character)
    )


def _split(key: str) -> list[str]:
    names = key.split("+")
    # "ctrl++" names the plus key itself.
    return [*names[:-2], "+"] if len(names) > 1 and not names[-1] else names


def _character(base: str) -> str | None:
    if len(base) == 1:
        return base
    return key_to_character(REPLACED_KEYS.get(base, base))


def _plain(base: str) -> str | None:
    """Return the character of a key, also of one of the keypad."""
    return _KEYPAD.get(base) or _character(base)


def _special(base: str, modifiers: int, modes: TerminalMode) -> str | None:
    if final := _CURSOR.get(base):
        if modifiers:
            return f"\x1b[1;{modifiers + 1}{final}"
        return f"\x1bO{final}" if modes & TerminalMode.CURSOR_KEYS else f"\x1b[{final}"
    if final := _FUNCTION.get(base):
        return f"\x1b[1;{modifiers + 1}{final}" if modifiers else f"\x1bO{final}"
    if number := _TILDE.get(base):
        return f"\x1b[{number};{modifiers + 1}~" if modifiers else f"\x1b[{number}~"
    return None


def _editing(base: str, modifiers: int, modes: TerminalMode) -> str | None:
    escape = "\x1b" if modifiers & _ALT else ""
    match base:
        case "tab":
            return "\x1b[Z" if modifiers & _SHIFT else f"{escape}\t"
        case "enter":
            return f"{escape}\r\n" if modes & TerminalMode.NEW_LINE else f"{escape}\r"
        case "escape":
            return f"{escape}\x1b"
        case "backspace":
            # Ctrl swaps the two characters that a backspace key may send.
            swapped = bool(modifiers & _CTRL) != bool(modes & TerminalMode.BACKARROW)
            return escape + ("\x08" if swapped else "\x7f")
        case _:
            return None


def _modified_key(base: str, modifiers: int, modes: TerminalMode) -> str | None:
    """Return the sequence for a program that requested `modifyOtherKeys`."""
    # Alt alone stays Escape and the key: over a slow connection it may have been just these two.
    if not modes & (TerminalMode.OTHER_KEYS | TerminalMode.SOME_KEYS) or not modifiers & (
        _SHIFT | _CTRL
    ):
        return None
    if (base, modifiers) in _LEFT_ALONE or (
        modes & TerminalMode.SOME_KEYS and _is_well_known(base)
    ):
        return None
    code = _CODES.get(base)
    if code is None:
        plain = _character(base)
        if plain is None or not modifiers & _CTRL:
            return None
        upper = plain.upper()
        code = ord(upper if modifiers & _SHIFT and len(upper) == 1 else plain)
    return f"\x1b[27;{modifiers + 1};{code}~"


def _is_well_known(base: str) -> bool:
    """Return whether level 1 leaves a key unchanged, since its control character is unique already."""
    plain = _character(base) or ""
    return base == "backspace" or (plain.lower() in _CONTROL and plain not in _OURS_ALONE)


def _text(base: str, modifiers: int, character: str | None) -> str | None:
    escape = "\x1b" if modifiers & _ALT else ""
    if not modifiers & (_CTRL | _ALT) and character and character.isprintable():
        return character
    plain = _plain(base)
    if plain is None or not plain.isprintable():
        return None
    if modifiers & _CTRL:
        return escape + _CONTROL.get(plain.lower(), plain)
    if modifiers & _SHIFT:
        plain = plain.upper()
    return escape + plain


_MOUSE_SHIFT, _META, _MOUSE_CTRL, _MOTION, _NO_BUTTON = 4, 8, 16, 32, 3
_LEGACY_LIMIT = 94
"""The old encoding is bytes above 32; past this cell they would not be ASCII any more."""
_UTF8_LIMIT = 2015
"""The same as UTF-8, of two bytes at most."""


class Act(Enum):
    """The kind of a mouse event."""

    PRESS = "press"
    RELEASE = "release"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class Mouse:
    """One report. `button` is 0 left, 1 middle, 2 right, 64..67 wheel, or None for no button."""

    act: Act
    button: int | None
    x: int
    y: int
    shift: bool = False
    meta: bool = False
    ctrl: bool = False


def wants_mouse(modes: TerminalMode) -> bool:
    """Return whether the program requested mouse reports."""
    return bool(modes & MOUSE_MODES)


def encode_mouse(mouse: Mouse, modes: TerminalMode) -> str | None:
    """Return the report, or None when the program did not request it."""
    if not _wanted(mouse, modes):
        return None
    code = _NO_BUTTON if mouse.button is None else mouse.button
    if mouse.act is Act.MOVE:
        code += _MOTION
    if not _is_x10(modes):
        code += _MOUSE_SHIFT * mouse.shift + _META * mouse.meta + _MOUSE_CTRL * mouse.ctrl
    if modes & (TerminalMode.MOUSE_SGR | TerminalMode.MOUSE_PIXELS):
        return _numbered(code, mouse, modes)
    if mouse.act is Act.RELEASE:
        code = code & ~3 | _NO_BUTTON
    if modes & TerminalMode.MOUSE_URXVT:
        return f"\x1b[{32 + code};{mouse.x + 1};{mouse.y + 1}M"
    limit = _UTF8_LIMIT if modes & TerminalMode.MOUSE_UTF8 else _LEGACY_LIMIT
    if mouse.x >= limit or mouse.y >= limit:
        return None
    return f"\x1b[M{chr(32 + code)}{chr(33 + mouse.x)}{chr(33 + mouse.y)}"


def _numbered(code: int, mouse: Mouse, modes: TerminalMode) -> str:
    """Return the newest encoding: decimal numbers, of cells or of pixels, here the middle of the cell."""
    x, y = mouse.x, mouse.y
    if modes & TerminalMode.MOUSE_PIXELS:
        width, height = CELL_PIXELS
        x, y = x * width + width // 2, y * height + height // 2
    final = "m" if mouse.act is Act.RELEASE else "M"
    return f"\x1b[<{code};{x + 1};{y + 1}{final}"


def _is_x10(modes: TerminalMode) -> bool:
    return modes & MOUSE_MODES == TerminalMode.MOUSE_X10


def _wanted(mouse: Mouse, modes: TerminalMode) -> bool:
    if _is_x10(modes):
        return mouse.act is Act.PRESS
    if mouse.act is not Act.MOVE:
        return wants_mouse(modes)
    held = (
        TerminalMode.MOUSE_ANY
        if mouse.button is None
        else TerminalMode.MOUSE_DRAG | TerminalMode.MOUSE_ANY
    )
    return bool(modes & held)


WHEEL_LINES = 3
CLICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Spot:
    """A cell of the program's screen."""

    x: int
    y: int


class MouseInput:
    """One terminal's mouse. `send` types into the program."""

    def __init__(self, emulator: Emulator, send: Callable[[str], None]) -> None:
        self._emulator = emulator
        self._send = send
        self._held: int | None = None
        self._selecting = False
        self._extended = False
        self._clicks = 0
        self._last: tuple[Spot, float] = (Spot(-1, -1), 0.0)
        self.beyond = 0
        """Where a selection is dragged to: -1 above the part in view, 1 below it."""
        self.has_selection = False

    def asks_link(self, event: events.MouseDown, modes: TerminalMode) -> bool:
        """Return whether a press opens a link: with Ctrl, and not for the program."""
        return event.button == 1 and event.ctrl and not self._reports(event, modes)

    def press(self, event: events.MouseDown, spot: Spot, modes: TerminalMode) -> None:
        """Note that a button went down."""
        if self._reports(event, modes):
            self._held = event.button - 1
            self._report(event, spot, modes, Act.PRESS, self._held)
        elif event.button == 1:
            self._start_selection(spot)

    def _start_selection(self, spot: Spot) -> None:
        now = time.monotonic()
        again = self._last[0] == spot and now - self._last[1] < CLICK_SECONDS
        self._clicks = self._clicks % 3 + 1 if again else 1
        self._last = (spot, now)
        kind = SelectionKind(self._clicks - 1)
        self._selecting, self._extended = True, kind is not SelectionKind.CELL
        self.has_selection = True
        self._emulator.select_from(spot.x, spot.y, kind)

    def move(self, event: events.MouseMove, spot: Spot, modes: TerminalMode, beyond: int) -> None:
        """Report a move of the mouse or select; `beyond` is -1 above and 1 below the widget."""
        if self._selecting:
            self.beyond = beyond
            if spot != self._last[0]:
                self._extended = True
            if self._extended:
                self._emulator.select_to(spot.x, spot.y)
        elif self._reports(event, modes) or self._held is not None:
            self._report(event, spot, modes, Act.MOVE, self._held)

    def pull(self, spot: Spot) -> None:
        """Continue selecting beyond the edge, for as long as the mouse is held there."""
        self._emulator.scroll(self.beyond)
        self._emulator.select_to(spot.x, spot.y)

    def release(self, event: events.MouseUp, spot: Spot, modes: TerminalMode) -> bool:
        """Report that a button went up; return whether a selection should be copied."""
        self.beyond = 0
        if self._held is not None:
            self._report(event, spot, modes, Act.RELEASE, self._held)
            self._held = None
            return False
        if not self._selecting:
            return False
        self._selecting = False
        if not self._extended:
            self.clear()
        return self._extended

    def wheel(self, event: events.MouseEvent, spot: Spot, modes: TerminalMode, lines: int) -> None:
        """Report a turn of the wheel by -1 (back) or 1, or scroll."""
        if self._reports(event, modes):
            self._report(event, spot, modes, Act.PRESS, 64 if lines < 0 else 65)
        elif not modes & TerminalMode.ALTERNATE_SCREEN:
            self._emulator.scroll(lines * WHEEL_LINES)
        elif modes & TerminalMode.ALTERNATE_SCROLL:
            key = encode_key("up" if lines < 0 else "down", None, modes)
            self._send((key or "") * WHEEL_LINES)

    def clear(self) -> None:
        """Clear the selection."""
        if self.has_selection:
            self.has_selection = False
            self._emulator.clear_selection()

    def _reports(self, event: events.MouseEvent, modes: TerminalMode) -> bool:
        return wants_mouse(modes) and not event.shift

    def _report(
        self,
        event: events.MouseEvent,
        spot: Spot,
        modes: TerminalMode,
        act: Act,
        button: int | None,
    ) -> None:
        mouse = Mouse(act, button, spot.x, spot.y, event.shift, event.meta, event.ctrl)
        if text := encode_mouse(mouse, modes):
            self._send(text)


BATCH = 16 << 10
"""Characters sent at once; a paste is sent in pieces, so that it never fills the connection."""
REPLIES_KEPT = 64 << 10
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def paste_text(text: str, modes: TerminalMode) -> str:
    """Return pasted text as typed: lines end as with Enter, and nothing in it can act as a key.

    An escape inside could end the bracket early and run what follows, so controls become blanks.
    """
    text = _CONTROLS.sub(" ", text.replace("\r\n", "\r").replace("\n", "\r"))
    return f"\x1b[200~{text}\x1b[201~" if modes & TerminalMode.BRACKETED_PASTE else text


class InputQueue:
    """Sends what is typed, in order, several keys at once when the source is slow."""

    def __init__(self, source: TerminalSource) -> None:
        self._source = source
        self._pieces: deque[str] = deque()
        self._waiting = 0
        self._filled = asyncio.Event()

    def type(self, text: str) -> None:
        """Queue text of any length."""
        for at in range(0, len(text), BATCH):
            self._pieces.append(text[at : at + BATCH])
        self._waiting += len(text)
        self._filled.set()

    def reply(self, data: bytes) -> None:
        """Queue a reply of the emulator; dropped when the program sends queries without end."""
        if self._waiting + len(data) <= REPLIES_KEPT:
            self.type(data.decode("latin-1"))

    async def run(self) -> None:
        """Send until canceled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._pieces:
                await self._source.send(self._take())

    def _take(self) -> str:
        pieces = [self._pieces.popleft()]
        size = len(pieces[0])
        while self._pieces and size + len(self._pieces[0]) <= BATCH:
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1])
        self._waiting -= size
        return "".join(pieces)


SETTLE_SECONDS = 0.05

Size = tuple[int, int]


def program_size(width: int, height: int) -> Size:
    """Return the size to request: that of the widget, but never less than a core supports."""
    return min(max(width, MIN_COLS), MAX_COLS), min(max(height, MIN_ROWS), MAX_ROWS)


class ResizeDebounce:
    """Requests one size for each settled change."""

    def __init__(self, source: TerminalSource) -> None:
        self._source = source
        self._wanted: Size | None = None
        self._requested: Size | None = None
        self._changed = asyncio.Event()

    def want(self, width: int, height: int) -> None:
        """Note that the widget has this size now."""
        self._wanted = program_size(width, height)
        self._changed.set()

    def claim(self, present: Size) -> None:
        """Note that the reader is here; request the size again if somebody else changed it."""
        if self._wanted is not None and present != self._wanted:
            self._requested = None
            self._changed.set()

    async def run(self) -> None:
        """Send requests until canceled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._requested is not None:
                await self._settle()
            if self._wanted is not None and self._wanted != self._requested:
                self._requested = self._wanted
                await self._source.resize(*self._wanted)

    async def _settle(self) -> None:
        while True:
            try:
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                return
            self._changed.clear()
