"""Mouse reports as xterm sends them, in the coordinates of the program's screen."""

from dataclasses import dataclass
from enum import Enum

from quarterdeck.tui.terminal.core import CELL_PIXELS, MOUSE_MODES, Mode

_SHIFT, _META, _CTRL, _MOTION, _NO_BUTTON = 4, 8, 16, 32, 3
_LEGACY_LIMIT = 94
"""The old encoding is bytes above 32; past this cell they would not be ASCII any more."""
_UTF8_LIMIT = 2015
"""The same as UTF-8, of two bytes at most."""


class Act(Enum):
    """What the mouse did."""

    PRESS = "press"
    RELEASE = "release"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class Mouse:
    """One report. `button` is 0 left, 1 middle, 2 right, 64..67 wheel, or null when none is held."""

    act: Act
    button: int | None
    x: int
    y: int
    shift: bool = False
    meta: bool = False
    ctrl: bool = False


def wants_mouse(modes: Mode) -> bool:
    """Whether the program asked for the mouse."""
    return bool(modes & MOUSE_MODES)


def encode_mouse(mouse: Mouse, modes: Mode) -> str | None:
    """What to send, or null when the program did not ask for this."""
    if not _wanted(mouse, modes):
        return None
    code = _NO_BUTTON if mouse.button is None else mouse.button
    if mouse.act is Act.MOVE:
        code += _MOTION
    if not _is_x10(modes):
        code += _SHIFT * mouse.shift + _META * mouse.meta + _CTRL * mouse.ctrl
    if modes & (Mode.MOUSE_SGR | Mode.MOUSE_PIXELS):
        return _numbered(code, mouse, modes)
    if mouse.act is Act.RELEASE:
        code = code & ~3 | _NO_BUTTON
    if modes & Mode.MOUSE_URXVT:
        return f"\x1b[{32 + code};{mouse.x + 1};{mouse.y + 1}M"
    limit = _UTF8_LIMIT if modes & Mode.MOUSE_UTF8 else _LEGACY_LIMIT
    if mouse.x >= limit or mouse.y >= limit:
        return None
    return f"\x1b[M{chr(32 + code)}{chr(33 + mouse.x)}{chr(33 + mouse.y)}"


def _numbered(code: int, mouse: Mouse, modes: Mode) -> str:
    """The newest encoding: decimal numbers, of cells or of pixels, here the middle of the cell."""
    x, y = mouse.x, mouse.y
    if modes & Mode.MOUSE_PIXELS:
        width, height = CELL_PIXELS
        x, y = x * width + width // 2, y * height + height // 2
    final = "m" if mouse.act is Act.RELEASE else "M"
    return f"\x1b[<{code};{x + 1};{y + 1}{final}"


def _is_x10(modes: Mode) -> bool:
    return modes & MOUSE_MODES == Mode.MOUSE_X10


def _wanted(mouse: Mouse, modes: Mode) -> bool:
    if _is_x10(modes):
        return mouse.act is Act.PRESS
    if mouse.act is not Act.MOVE:
        return wants_mouse(modes)
    held = Mode.MOUSE_ANY if mouse.button is None else Mode.MOUSE_DRAG | Mode.MOUSE_ANY
    return bool(modes & held)
