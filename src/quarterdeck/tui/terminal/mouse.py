"""Mouse reports as xterm sends them, in the coordinates of the program's screen."""

from dataclasses import dataclass
from enum import Enum

from quarterdeck.tui.terminal.core import MOUSE_MODES, Mode

_SHIFT, _META, _CTRL, _MOTION, _NO_BUTTON = 4, 8, 16, 32, 3
_LEGACY_LIMIT = 94
"""The old encoding is bytes above 32; past this cell they would not be ASCII any more."""


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
    if modes & Mode.MOUSE_SGR:
        final = "m" if mouse.act is Act.RELEASE else "M"
        return f"\x1b[<{code};{mouse.x + 1};{mouse.y + 1}{final}"
    if mouse.x >= _LEGACY_LIMIT or mouse.y >= _LEGACY_LIMIT:
        return None
    if mouse.act is Act.RELEASE:
        code = code & ~3 | _NO_BUTTON
    return f"\x1b[M{chr(32 + code)}{chr(33 + mouse.x)}{chr(33 + mouse.y)}"


def _is_x10(modes: Mode) -> bool:
    return modes & MOUSE_MODES == Mode.MOUSE_X10


def _wanted(mouse: Mouse, modes: Mode) -> bool:
    if _is_x10(modes):
        return mouse.act is Act.PRESS
    if mouse.act is not Act.MOVE:
        return wants_mouse(modes)
    held = Mode.MOUSE_ANY if mouse.button is None else Mode.MOUSE_DRAG | Mode.MOUSE_ANY
    return bool(modes & held)
