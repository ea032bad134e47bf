"""The terminal as the cockpit left it, whatever a program did to it or however it ended."""

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Generator

SANE = (
    "\x1b[!p"  # soft reset: origin and insert mode, scroll region, charset, keypad, attributes
    "\x1b[0m\x1b[r\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[4l\x1b[?6l\x1b>"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2026l"
    "\x1b[<9u\x1b[?1049l"
)
"""Undoes what a program that was killed leaves behind."""


@contextlib.contextmanager
def put_right() -> Generator[None]:
    """The terminal as it was, and keys that interrupt reach only the program."""
    terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
    try:
        settings = termios.tcgetattr(terminal)
    except termios.error:
        settings = None
    # A handler, not SIG_IGN: that one the program would inherit.
    kept = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        if settings is not None:
            with contextlib.suppress(termios.error, OSError):
                _take_terminal(terminal)
                termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
                os.write(sys.__stderr__.fileno() if sys.__stderr__ else terminal, SANE.encode())


def _take_terminal(terminal: int) -> None:
    """In the foreground again, though the program made a group of its own that is there."""
    kept = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, os.getpgrp())
    finally:
        signal.signal(signal.SIGTTOU, kept)


def _ignore(number: int, frame: object) -> None:
    """The key was meant for the program."""
