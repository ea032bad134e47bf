"""Programs of the person's own, which take the terminal for a while: a pager, an editor."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from textual.app import App, SuspendNotSupported
from textual.widget import Widget

from quarterdeck.tui.editing import put_right
from quarterdeck.tui.stepping_aside import run_there, stepped_aside

READ_ONLY = 0o400
OWNER_ONLY = 0o600


def pager(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command of the person's pager."""
    return _words(environment.get("PAGER")) or ["less"]


def editor(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command of the person's editor."""
    return _words(environment.get("VISUAL")) or _words(environment.get("EDITOR")) or ["vi"]


def _words(command: str | None) -> list[str]:
    try:
        return shlex.split(command or "")
    except ValueError:
        # A quote without its end: the person's shell would refuse it as well.
        return []


async def read_copy(widget: Widget, command: list[str], name: str, data: bytes) -> str:
    """Opens a copy that cannot be written to. Returns what went wrong, in a sentence.

    The cockpit paints nothing meanwhile; what happens is there afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as directory:
        path = _copy(directory, name, data, READ_ONLY)
        try:
            with stepped_aside(cast("App[Any]", widget.app)), put_right():
                return await _run([*command, str(path)])
        except SuspendNotSupported:
            return "This terminal cannot be given to another program."


async def edited_copy(widget: Widget, command: list[str], name: str, text: str) -> tuple[str, str]:
    """The text as the person's editor left it, and what went wrong, in a sentence.

    The copy can be read by its owner alone, and is gone afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-") as directory:
        path = _copy(directory, name, text.encode(), OWNER_ONLY)
        try:
            with stepped_aside(cast("App[Any]", widget.app)), put_right():
                wrong = await _run([*command, str(path)])
            return (text, wrong) if wrong else (_content(path), "")
        except SuspendNotSupported:
            return text, "This terminal cannot be given to another program."
        except OSError as error:
            return text, f"What the editor wrote could not be read: {error.strerror}."
        except UnicodeDecodeError:
            return text, "What the editor wrote is no text: it stays as it was."


def _copy(directory: str, name: str, data: bytes, mode: int) -> Path:
    path = Path(directory, _file_name(name))
    path.touch(mode=OWNER_ONLY)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def _content(path: Path) -> str:
    return path.read_bytes().decode()


async def _run(command: list[str]) -> str:
    try:
        code = await run_there(command)
    except OSError as error:
        return f"{command[0]} could not be started: {error.strerror}. Set PAGER or EDITOR."
    return f"{command[0]} ended with code {code}." if code else ""


def _file_name(name: str) -> str:
    """A name of this machine that keeps its ending, by which an editor knows the language."""
    kept = "".join(c if c.isalnum() or c in "-._ " else "_" for c in name).lstrip(".-")
    return kept[-100:] or "file"
