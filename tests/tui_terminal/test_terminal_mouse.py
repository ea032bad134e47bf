"""Mouse reports in every mode."""

import pytest

from quarterdeck.tui.terminal.core import TerminalMode
from quarterdeck.tui.terminal.input import Act, Mouse, encode_mouse

SGR = TerminalMode.MOUSE_SGR


@pytest.mark.parametrize(
    ("mouse", "modes", "sent"),
    [
        (Mouse(Act.PRESS, 0, 4, 2), TerminalMode.MOUSE_CLICK | SGR, "\x1b[<0;5;3M"),
        (Mouse(Act.RELEASE, 0, 4, 2), TerminalMode.MOUSE_CLICK | SGR, "\x1b[<0;5;3m"),
        (Mouse(Act.PRESS, 2, 0, 0, ctrl=True), TerminalMode.MOUSE_CLICK | SGR, "\x1b[<18;1;1M"),
        (Mouse(Act.PRESS, 64, 4, 2), TerminalMode.MOUSE_CLICK | SGR, "\x1b[<64;5;3M"),
        (Mouse(Act.MOVE, 0, 4, 2), TerminalMode.MOUSE_CLICK | SGR, None),
        (Mouse(Act.MOVE, 0, 4, 2), TerminalMode.MOUSE_DRAG | SGR, "\x1b[<32;5;3M"),
        (Mouse(Act.MOVE, None, 4, 2), TerminalMode.MOUSE_DRAG | SGR, None),
        (Mouse(Act.MOVE, None, 4, 2), TerminalMode.MOUSE_ANY | SGR, "\x1b[<35;5;3M"),
        (Mouse(Act.PRESS, 0, 4, 2), TerminalMode.MOUSE_CLICK, "\x1b[M %#"),
        (Mouse(Act.RELEASE, 0, 4, 2), TerminalMode.MOUSE_CLICK, "\x1b[M#%#"),
        (Mouse(Act.PRESS, 0, 300, 2), TerminalMode.MOUSE_CLICK, None),
        (Mouse(Act.PRESS, 0, 4, 2, meta=True), TerminalMode.MOUSE_X10, "\x1b[M %#"),
        (Mouse(Act.RELEASE, 0, 4, 2), TerminalMode.MOUSE_X10, None),
        (Mouse(Act.PRESS, 0, 4, 2), TerminalMode.NONE, None),
        (
            Mouse(Act.PRESS, 0, 300, 2),
            TerminalMode.MOUSE_CLICK | TerminalMode.MOUSE_UTF8,
            "\x1b[M \u014d#",
        ),
        (
            Mouse(Act.PRESS, 0, 300, 2),
            TerminalMode.MOUSE_CLICK | TerminalMode.MOUSE_URXVT,
            "\x1b[32;301;3M",
        ),
        (
            Mouse(Act.RELEASE, 2, 4, 2),
            TerminalMode.MOUSE_CLICK | TerminalMode.MOUSE_URXVT,
            "\x1b[35;5;3M",
        ),
        (
            Mouse(Act.PRESS, 0, 4, 2),
            TerminalMode.MOUSE_CLICK | TerminalMode.MOUSE_PIXELS,
            "\x1b[<0;37;41M",
        ),
    ],
)
def test_report(mouse: Mouse, modes: TerminalMode, sent: str | None) -> None:
    assert encode_mouse(mouse, modes) == sent
