"""Other programs on the person's terminal: an editor, a pager. The cockpit steps aside meanwhile.

    suspend -> remember the terminal's settings -> program -> settings and screen put right -> resume

Whatever the program did to the terminal, or however it ended, the cockpit finds it as it left it.
"""

import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
import termios
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from quarterdeck.tui.stepping_aside import run_there, stepped_aside

EDITORS = ("sensible-editor", "nano", "vi")
PAGERS = ("less", "more")

SANE = (
    "\x1b[!p"  # soft reset: origin and insert mode, scroll region, charset, keypad, attributes
    "\x1b[0m\x1b[r\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[4l\x1b[?6l\x1b>"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2026l"
    "\x1b[<9u\x1b[?1049l"
)
"""Undoes what a program that was killed leaves behind."""


class NoProgramError(Exception):
    """There is no program to start, or it did not start; the text says what to do."""


def editor(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The person's editor.

    Raises:
        NoProgramError: there is none.
    """
    return _program(environment, ("VISUAL", "EDITOR"), EDITORS)


def pager(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The person's pager.

    Raises:
        NoProgramError: there is none.
    """
    return _program(environment, ("PAGER",), PAGERS)


async def edit(app: App[Any], text: str) -> str:
    """Lets the person change a text; what they left in it, without the newline at its end.

    Raises:
        NoProgramError: nothing was edited; the text is as it was.
    """
    with _kept(text, "message.md") as path:
        ended = await _run(app, [*editor(), str(path)])
        if ended:
            raise NoProgramError(f"The editor ended with {ended}: the text is as it was.")
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")


async def look_at(
    app: App[Any], text: str, program: Sequence[str], name: str = "transcript.md"
) -> None:
    """Shows a text in another program.

    Raises:
        NoProgramError: it did not start.
    """
    with _kept(text, name) as path:
        await _run(app, [*program, str(path)])


def _program(
    environment: Mapping[str, str], names: Sequence[str], others: Sequence[str]
) -> list[str]:
    for name in names:
        if words := _words(environment.get(name, "")):
            return words
    found = next((other for other in others if shutil.which(other)), None)
    if found is None:
        raise NoProgramError(f"No program found: set {names[-1]} to one.")
    return [found]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


@contextlib.contextmanager
def _kept(text: str, name: str) -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as directory:
        path = Path(directory) / name
        path.write_text(f"{text}\n" if text else "", encoding="utf-8")
        yield path


async def _run(app: App[Any], command: Sequence[str]) -> int:
    try:
        with stepped_aside(app), put_right():
            return await run_there(command)
    except SuspendNotSupported as error:
        raise NoProgramError("Other programs cannot be started from here.") from error
    except OSError as error:
        raise NoProgramError(f"{command[0]} did not start: {error.strerror}.") from error


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
