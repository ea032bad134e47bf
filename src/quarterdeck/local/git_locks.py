"""Lock files of git. A git process that is killed leaves its locks behind."""

import os
from contextlib import suppress
from pathlib import Path

_PATTERNS = ("*.lock", "worktrees/*/*.lock", "packed-refs.new", "gc.pid")


def git_locks(directory: Path) -> list[Path]:
    """Return the locks in git's directory, also those that a living process holds.

    Directories are not followed through links, and may be of any depth.
    """
    found = [path for pattern in _PATTERNS for path in directory.glob(pattern)]
    places = [str(directory / "refs")]
    while places:
        with suppress(OSError), os.scandir(places.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    places.append(entry.path)
                elif entry.name.endswith(".lock"):
                    found.append(Path(entry.path))
    return found


def remove_git_locks(directory: Path) -> None:
    """Remove the locks in git's directory. No git process may write there.

    Raises:
        OSError: one cannot be removed.
    """
    for lock in git_locks(directory):
        lock.unlink(missing_ok=True)
