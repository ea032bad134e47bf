"""Programs outside of the cockpit: editors, pagers, browsers.

An editor or pager has the terminal; meanwhile the cockpit continues, but paints nothing.

    suspend --> driver silenced --> program runs, the loop too --> driver speaks again --> resume

So streams are read meanwhile, and the screen is up to date when the user comes back.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
import termios
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from textual.app import App, SuspendNotSupported

EDITORS = ("sensible-editor", "nano", "vi")
PAGERS = ("less", "more")


class OutsideError(Exception):
    """A program could not be found, did not start or failed; the text says so, and what to do."""


def editor(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the command of the user's editor.

    Raises:
        OutsideError: none was found.
    """
    return _program(environment, ("VISUAL", "EDITOR"), EDITORS)


def pager(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the command of the user's pager.

    Raises:
        OutsideError: none was found.
    """
    return _program(environment, ("PAGER",), PAGERS)


def _program(
    environment: Mapping[str, str], names: Sequence[str], others: Sequence[str]
) -> list[str]:
    for name in names:
        if words := _words(environment.get(name, "")):
            return words
    found = next((other for other in others if shutil.which(other)), None)
    if found is None:
        raise OutsideError(f"None of {', '.join(others)} is there: set {names[-1]} to a program.")
    return [found]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        # An unclosed quote: it fails to start, and its name says why.
        return [command]


SANE = (
    "\x1b[!p"  # soft reset: origin and insert mode, scroll region, charset, keypad, attributes
    "\x1b[0m\x1b[r\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[4l\x1b[?6l\x1b>"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2026l"
    "\x1b[<9u\x1b[?1049l"
)
"""Resets the modes that a killed program leaves on."""


@contextlib.contextmanager
def put_right() -> Generator[None]:
    """Restore the terminal at the end; until then, keys that interrupt reach only the program."""
    terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
    try:
        settings = termios.tcgetattr(terminal)
    except termios.error:
        settings = None
    # A handler, not SIG_IGN, which the program would inherit.
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
    """Take the terminal back from a process group that the program created."""
    kept = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, os.getpgrp())
    finally:
        signal.signal(signal.SIGTTOU, kept)


def _ignore(number: int, frame: object) -> None:
    """Note that the key was meant for the program."""


_later: dict[App[Any], list[str]] = {}
"""Output to write when the terminal is ours again."""


@contextlib.contextmanager
def stepped_aside(app: App[Any]) -> Generator[None]:
    """Leave the terminal to another program.

    Raises:
        SuspendNotSupported: it cannot be given away.
    """
    with app.suspend():
        driver: Any = app._driver  # pyright: ignore[reportPrivateUsage]
        # A suspended driver keeps accepting output, and blocks the loop when its queue is full.
        driver.write, driver.flush = _nowhere, _nothing
        _later[app] = []
        try:
            yield
        finally:
            del driver.write, driver.flush
            kept = _later.pop(app)
    for sequence in kept:
        driver.write(sequence)
    driver.flush()


def say_later(app: App[Any], sequence: str) -> bool:
    """Keep output for the terminal while another program has it; return whether that is so."""
    if app in _later:
        _later[app].append(sequence)
    return app in _later


async def run_there(command: Sequence[str]) -> int:
    """Run a program on the terminal; return its exit code.

    Raises:
        OSError: it did not start.
    """
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        # The cockpit is closing: nothing would give the terminal back to it.
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise


def _nowhere(data: str) -> None:
    """Write nothing, in place of the driver: everything is painted again afterwards."""


def _nothing() -> None:
    """Flush nothing, in place of the driver's own method."""


READ_ONLY = 0o400
OWNER_ONLY = 0o600


async def edit(app: App[Any], name: str, text: str, errors: str = "strict") -> str:
    """Let the user edit a text in their editor.

    Args:
        name: the file's name, whose suffix tells the editor the language.
        errors: how to handle undecodable bytes, as in `bytes.decode`.

    Returns:
        The edited content.

    Raises:
        OutsideError: nothing was edited; the text is unchanged.
    """
    with _copy(name, text.encode(), OWNER_ONLY) as path:
        if wrong := await _run(app, editor(), path):
            raise OutsideError(f"{wrong}: text unchanged.")
        try:
            return path.read_bytes().decode(errors=errors)
        except OSError as error:
            raise OutsideError(f"Its output cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise OutsideError("The editor did not write text; nothing was changed.") from error


async def look_at(
    app: App[Any], name: str, data: bytes, program: Callable[[], list[str]] = editor
) -> None:
    """Show a read-only copy in another program.

    Raises:
        OutsideError: it did not start, or reported a failure.
    """
    with _copy(name, data, READ_ONLY) as path:
        if wrong := await _run(app, program(), path):
            raise OutsideError(f"{wrong}.")


@contextlib.contextmanager
def _copy(name: str, data: bytes, mode: int) -> Generator[Path]:
    """Yield a file that only its owner can read, and that is deleted afterwards.

    Raises:
        OutsideError: it cannot be written.
    """
    with contextlib.ExitStack() as stack:
        try:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="quarterdeck-"))
            path = Path(directory, _file_name(name))
            path.touch(mode=OWNER_ONLY)
            path.write_bytes(data)
            path.chmod(mode)
        except OSError as error:
            raise OutsideError(f"A copy of it cannot be written: {error.strerror}.") from error
        yield path


def _file_name(name: str) -> str:
    """Return a safe name for this machine that keeps its suffix."""
    kept = "".join(c if c.isalnum() or c in "-._ " else "_" for c in name).lstrip(".-")
    return kept.encode()[-100:].decode(errors="ignore") or "file"


async def _run(app: App[Any], command: list[str], path: Path) -> str:
    """Return how it failed, or None."""
    name = Path(command[0]).name
    try:
        with stepped_aside(app), put_right():
            code = await run_there([*command, str(path)])
    except SuspendNotSupported as error:
        raise OutsideError("This terminal cannot be handed to another program.") from error
    except OSError as error:
        raise OutsideError(f"{name} did not start: {error.strerror}.") from error
    if code < 0:
        return f"{name} was killed ({signal.Signals(-code).name})"
    return f"{name} ended with code {code}" if code else ""


OPENED = ("http", "https")
"""Any other scheme may start any program: such an address can be copied."""
OPENERS = ("xdg-open", "wslview")
OPEN_SECONDS = 10.0


def shown_address(uri: str) -> str:
    """Return an address without invisible characters, with its host in the form used by DNS."""
    return "".join(c if " " < c <= "~" else f"\\u{{{ord(c):x}}}" for c in uri)


def opener(uri: str, environment: Mapping[str, str] = os.environ) -> list[str] | None:
    """Return the command that opens an address; None where nothing here can or should."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() not in OPENED or not parts.hostname or shown_address(uri) != uri:
        return None
    if "SSH_CONNECTION" in environment:
        return None  # a browser here would not be the user's
    if sys.platform == "darwin":
        return ["open", uri]
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return None
    return next(([path, uri] for name in OPENERS if (path := shutil.which(name))), None)


async def open_address(command: list[str]) -> bool:
    """Run the command of an opener away from the terminal; return whether it succeeded."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        return True  # some openers run as long as the browser does
