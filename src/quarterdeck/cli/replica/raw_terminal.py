"""This process's terminal in raw mode, and always back."""

import os
import re
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager

LEAVE = (
    b"\x1b7"  # leaving a screen that was not entered moves the cursor to where it was kept last
    b"\x1b[<u"  # keyboard protocol of its own
    b"\x1b[>4;0m"  # modified keys
    b"\x1b[?1000;1002;1003;1004;1005;1006;1015;2004;2026;2031l"  # mouse, focus, paste, sync
    b"\x1b[?1049l"  # alternate screen
    b"\x1b[?1l\x1b>"  # cursor and number keys
    b"\x1b7\x1b[r\x1b8"  # scroll region, which moves the cursor
    b"\x1b(B\x0f"  # character set
    b"\x1b[?7;25h\x1b[0 q\x1b[0m"  # wrapping, cursor, colors
)
"""Ends what a program in the session may have switched on."""

_ASKS = re.compile(
    rb"\x1b\[[>=?]?[0-9;]*c"  # what are you
    rb"|\x1b\[\??[0-9;]*n"  # where is the cursor, are you well
    rb"|\x1b\[\??[0-9;]*\$p"  # is this mode on
    rb"|\x1b\[\?[0-9;]*m"  # how are keys modified
    rb"|\x1b\[\?u|\x1b\[>[0-9]*q|\x1b\[1[1-9]t"  # key protocol, version, sizes
    rb"|\x1b\][0-9;]*;\?[^\x07\x1b]*(?:\x07|\x1b\\)"  # what color is it
    rb"|\x1bP[+$]q[^\x1b]*\x1b\\"  # what can you, how is it set
)


def without_questions(replay: bytes) -> bytes:
    """Old output without the questions to the terminal in it: asked a second time, their answers
    would be typed into whatever runs now."""
    return _ASKS.sub(b"", replay)


@contextmanager
def raw_terminal() -> Generator[None]:
    """Raw mode for the time of the block; afterwards everything is as before.

    Raises:
        OSError: stdin is no terminal.
    """
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    before = termios.tcgetattr(source)
    tty.setraw(source, termios.TCSADRAIN)  # keys that were typed already are kept
    try:
        yield
    finally:
        write_all(sink, LEAVE + b"\r\n")
        termios.tcsetattr(source, termios.TCSAFLUSH, before)


def write_all(sink: int, data: bytes) -> None:
    """Writes every byte, blocking. A terminal that went away is not an error here."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(sink, view) :]
        except OSError:
            return
