"""A text in a file of its own, for the time that another program has it."""

import contextlib
import signal
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from quarterdeck.tui.outside.aside import run_there, stepped_aside
from quarterdeck.tui.outside.programs import OutsideError, editor
from quarterdeck.tui.outside.terminal import put_right

READ_ONLY = 0o400
OWNER_ONLY = 0o600


async def edit(app: App[Any], name: str, text: str, errors: str = "strict") -> str:
    """Lets the person change a text in their editor.

    Args:
        name: the file's name, by whose ending the editor knows the language.
        errors: what is done with bytes that are no text, as `bytes.decode` has it.

    Returns:
        What they left in it.

    Raises:
        OutsideError: nothing was edited; the text is as it was.
    """
    with _copy(name, text.encode(), OWNER_ONLY) as path:
        if wrong := await _run(app, editor(), path):
            raise OutsideError(f"{wrong}: the text is as it was.")
        try:
            return path.read_bytes().decode(errors=errors)
        except OSError as error:
            raise OutsideError(f"What it wrote cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise OutsideError("What the editor wrote is no text: it stays as it was.") from error


async def look_at(
    app: App[Any], name: str, data: bytes, program: Callable[[], list[str]] = editor
) -> None:
    """Shows a copy that cannot be written to in another program.

    Raises:
        OutsideError: it did not start, or says that it failed.
    """
    with _copy(name, data, READ_ONLY) as path:
        if wrong := await _run(app, program(), path):
            raise OutsideError(f"{wrong}.")


@contextlib.contextmanager
def _copy(name: str, data: bytes, mode: int) -> Generator[Path]:
    """A file that its owner alone can read, and that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as directory:
        path = Path(directory, _file_name(name))
        path.touch(mode=OWNER_ONLY)
        path.write_bytes(data)
        path.chmod(mode)
        yield path


def _file_name(name: str) -> str:
    """A name of this machine that keeps its ending."""
    kept = "".join(c if c.isalnum() or c in "-._ " else "_" for c in name).lstrip(".-")
    return kept[-100:] or "file"


async def _run(app: App[Any], command: list[str], path: Path) -> str:
    """How it failed, if it did."""
    name = Path(command[0]).name
    try:
        with stepped_aside(app), put_right():
            code = await run_there([*command, str(path)])
    except SuspendNotSupported as error:
        raise OutsideError("This terminal cannot be given to another program.") from error
    except OSError as error:
        raise OutsideError(f"{name} did not start: {error.strerror}.") from error
    if code < 0:
        return f"{name} was killed ({signal.Signals(-code).name})"
    return f"{name} ended with code {code}" if code else ""
