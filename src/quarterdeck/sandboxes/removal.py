"""Removing a workspace's directory, whatever modes its files were given."""

import os
import shutil
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


def _open_directories(path: Path) -> None:
    # a directory without write or search permission keeps its owner out too
    waiting = [path]
    while waiting:
        current = waiting.pop()
        current.chmod(0o700)
        with os.scandir(current) as entries:
            waiting += [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
