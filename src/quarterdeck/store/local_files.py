"""Files of the machine that the cockpit runs on: read to be uploaded, written when saved."""

import contextlib
import os
import stat
from pathlib import Path


class LocalFileError(Exception):
    """It could not be read or written; the text says why."""


class FileThereError(LocalFileError):
    """There is a file of this name, and nobody said that it may be replaced."""


def local_path(typed: str, directory: Path) -> Path:
    """A path as a person types it: `~` is their home directory, else it is below `directory`.

    Raises:
        LocalFileError: there is no such home.
    """
    try:
        return directory / Path(typed.strip()).expanduser()
    except RuntimeError as error:
        raise LocalFileError(f"{typed.split('/')[0]} is nobody's home here.") from error


def read_local(path: Path, most: int) -> bytes:
    """What is in a file of at most so many bytes.

    Raises:
        LocalFileError: there is none, it is no file, or it is larger.
    """
    try:
        # Not waited for: a pipe without a writer would never be opened.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise LocalFileError("That is no file.")
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise LocalFileError(_reason(error)) from error
    if len(data) > most:
        raise LocalFileError(f"It is larger than {most >> 20} MB.")
    return data


def save_local(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Writes a file: wholly, or not at all.

    Raises:
        FileThereError: it exists, and may not be replaced.
        LocalFileError: it cannot be written there.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.is_dir():
            raise LocalFileError("That is a directory: give a name in it.")
        partial.write_bytes(data)
        if replace:
            partial.replace(path)
        else:
            # Unlike renaming, linking never replaces what came there meanwhile.
            os.link(partial, path)
    except FileExistsError as error:
        raise FileThereError(f"{path} exists.") from error
    except (OSError, ValueError) as error:
        raise LocalFileError(_reason(error)) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            partial.unlink(missing_ok=True)


def _reason(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"{reason or error}."


def completed(typed: str, directory: Path) -> str | None:
    """The path with as much added as all names that begin so have in common; None for nothing."""
    head, slash, start = typed.rpartition("/")
    try:
        folder = local_path(head + slash, directory) if slash else directory
        names = [
            entry.name + ("/" if entry.is_dir() else "")
            for entry in os.scandir(folder)
            if entry.name.startswith(start) and (start or not entry.name.startswith("."))
        ]
    except (OSError, ValueError, LocalFileError):
        return None
    common = _beginning(names)
    return f"{head}{slash}{common}" if len(common) > len(start) else None


def _beginning(names: list[str]) -> str:
    """The characters that all names begin with."""
    first, last = min(names, default=""), max(names, default="")
    pairs = zip(first, last, strict=False)
    return first[: next((at for at, (a, b) in enumerate(pairs) if a != b), len(first))]
