"""Files that only their owner reads and that are never seen half written."""

import os
import tempfile
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replaces a file in one step, readable by its owner only.

    Raises:
        OSError: the disk is full, or the directory cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
