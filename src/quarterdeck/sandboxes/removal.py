"""Removing directories: a workspace's, whatever modes its files were given, and what a killed
service had no time to remove."""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Removes a directory and all below it; links are removed, not followed.

    Raises:
        OSError: something could not be removed.
    """
    if not os.path.lexists(path):
        return
    if os.geteuid() != 0:
        _open_directories(path)
    shutil.rmtree(path)


def passing_name(kind: str) -> str:
    """A name for a directory that this process removes again; see `remove_abandoned`."""
    return f".{kind}-{os.getpid()}-{secrets.token_hex(8)}"


def remove_abandoned(directory: Path, kind: str) -> None:
    """Removes directories with a `passing_name` whose process has ended without doing so.

    Raises:
        OSError: one could not be removed.
    """
    for path in directory.glob(f".{kind}-*"):
        maker = path.name.split("-")[1]
        if maker.isdecimal() and Path("/proc", maker).exists():
            continue
        with suppress(FileNotFoundError):  # another one removes it too
            remove_tree(path)


def _open_directories(path: Path) -> None:
    # a directory without write or search permission keeps its owner out too
    waiting = [path]
    while waiting:
        current = waiting.pop()
        current.chmod(0o700)
        with os.scandir(current) as entries:
            waiting += [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
