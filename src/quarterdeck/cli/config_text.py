"""Reads the configuration file's text to change a part of it, and writes it whole."""

import os
import tomllib
from pathlib import Path
from typing import Any

from quarterdeck.cli.errors import ConfigFault


def config_text(path: Path) -> tuple[str, dict[str, Any]]:
    """The text and what it says; both empty when there is no file.

    Raises:
        ConfigFault: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigFault(f"{path} cannot be read: {e}.", "Correct the file.") from e


def reads_as(text: str, wanted: dict[str, Any]) -> bool:
    """Whether a changed text says what was wanted, and nothing else changed."""
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def put_config(path: Path, text: str) -> None:
    """All of it or nothing; the file may hold keys, so it keeps its mode and is private when new.

    Raises:
        ConfigFault: it cannot be written.
    """
    target = path.resolve()
    draft = target.with_name(f"{target.name}.new")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(target)
    except OSError as e:
        raise ConfigFault(f"{path} cannot be written: {e.strerror}.") from e
