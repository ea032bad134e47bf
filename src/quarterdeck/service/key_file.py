"""Files that hold a key: readable by their owner alone, whole or not there."""

import os
from pathlib import Path

from quarterdeck.service.errors import HomeUnusableError


def read_key_file(path: Path) -> str | None:
    """Its text, or None when there is no file.

    Raises:
        HomeUnusableError: it cannot be read.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as e:
        raise HomeUnusableError(f"The key file {path} cannot be read: {e}.") from e


def write_key_file(path: Path, key: str) -> None:
    """Puts a key on the disk for good, whatever was there before.

    Raises:
        HomeUnusableError: it cannot be written.
    """
    draft = path.with_suffix(".new")
    try:
        draft.unlink(missing_ok=True)
        # Owner-only from its first moment, whatever the umask is.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _sync(path.parent)
    except OSError as e:
        raise HomeUnusableError(f"The key file {path} cannot be written: {e.strerror}.") from e


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
