"""Files of a directory in which programs are at work."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def files_under(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Each regular file and what is in it; what is taken away meanwhile is passed over.

    `Path.rglob` fails there: a directory it has just read of may be gone.
    """
    for place, _, names in os.walk(directory):
        for path in (Path(place, name) for name in names):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    yield path, path.read_bytes()
