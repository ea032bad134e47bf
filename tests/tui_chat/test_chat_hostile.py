"""What agents, files and services say reaches the terminal as text, or not at all."""

import re
import sys
from pathlib import Path

from tests.support.program import Program
from tests.tui_chat.hostile import HOSTILE, NEVER

ROOT = Path(__file__).parents[2]


def test_nothing_that_comes_from_elsewhere_commands_the_terminal(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.tui_chat.hostile_app", str(tmp_path)]
    with Program(argv, columns=160, lines=60, directory=ROOT) as program:
        program.wait_for("with the next message")
        program.wait_for("gnp.exe")
        program.settle(0.5)
        # Every block, folded and open.
        for key in ("\x1b", "\t", "g", "\r", "j", "\r", "j", "\r", "j", "\r", "\x1b[F", "\x1b[6~"):
            program.type(key)
            program.settle(0.2)
        program.type("\x1b[20~")
        program.wait_for("does it")
        program.type("\r")
        program.settle(0.5)
        program.type("\x1b")
        program.settle(0.5)
        # The shape of the mouse pointer, as Textual asks for it.
        shown = re.sub(rb"\x1b\]22;[a-z]+\x07", b"", bytes(program.raw))
        assert program.process.poll() is None
    assert b"gnp.exe" in shown and HOSTILE.encode() not in shown
    found = {
        what: shown[max(0, at - 40) : at + 20]
        for what, bad in NEVER.items()
        if (at := shown.find(bad)) >= 0
    }
    assert found == {}
