"""Files in git's directory: what git would wait for, and what it leaves behind when it is killed."""

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from quarterdeck.local.processes import PROC, find, process_ids, read_name

_LOCKS = ("*.lock", "worktrees/*/*.lock", "packed-refs.new", "gc.pid")

_MAPPED = ("objects/info/commit-graph", "objects/pack/multi-pack-index")
"""git maps them, so they may be of any size."""
_LARGE = ("index", "packed-refs")
_LARGE_BYTES = 1 << 30
_SMALL = (
    *("HEAD", "config", "config.worktree", "commondir", "shallow", "qd-update"),
    *("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"),
)
_SMALL_BYTES = 64 << 20
_IN_THE_TREE = (".gitattributes", ".gitignore", ".mailmap")
"""git follows no link in their place."""
_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def unreadable_file(place: Path) -> str | None:
    """Return why git must not read a repository, as a sentence for a person; None if it may.

    git would wait for a pipe or device in the place of a file, or read a huge one. Only what it
    reads in nearly every command is looked at. Without a repository at `place` the result is None.

    Args:
        place: a work tree, or a bare repository.
    """
    directory = place / ".git"
    # `os.path` says no of what cannot be looked at.
    if not os.path.isdir(directory):  # noqa: PTH112
        if not os.path.exists(place / "HEAD") or not os.path.isdir(place / "objects"):  # noqa: PTH110, PTH112
            return None
        directory = place
    files = [(directory / name, _SMALL_BYTES) for name in _SMALL]
    files += [(directory / name, _LARGE_BYTES) for name in _LARGE]
    files += [(directory / name, sys.maxsize) for name in _MAPPED]
    files += [(place / name, _SMALL_BYTES) for name in _IN_THE_TREE if directory != place]
    # The branch is looked at last, because its name is read from HEAD.
    for path, most in (*files, *_branch(directory, _wrong(directory / "HEAD", 4096))):
        if wrong := _wrong(path, most):
            return (
                f"{path} is {wrong}, so git is not run there. Remove it, or put the right file in "
                "its place, and try again."
            )
    return None


def _branch(directory: Path, wrong: str | None) -> Iterator[tuple[Path, int]]:
    """Yield the file of the branch that is checked out, if HEAD can be read."""
    if wrong is None:
        with suppress(OSError, ValueError):
            kind, _, name = (directory / "HEAD").read_text().strip().partition(": ")
            if kind == "ref":
                yield directory / name, _SMALL_BYTES


def _wrong(path: Path, most: int) -> str | None:
    """Return what is in the place of a file of at most this size. git itself refuses a directory."""
    try:
        found = path.lstat() if path.name in _IN_THE_TREE else path.stat()
        if stat.S_ISREG(found.st_mode):
            return f"too large ({found.st_size:,} bytes)" if found.st_size > most else None
        if found.st_rdev == Path(os.devnull).stat().st_rdev:
            return None
    except (OSError, ValueError):
        return None
    return next((name for test, name in _SPECIAL if test(found.st_mode)), None)


def git_locks(directory: Path) -> list[Path]:
    """Return the locks in git's directory, also those that a living process holds.

    Directories are not followed through links, and may be of any depth.
    """
    found = [path for pattern in _LOCKS for path in directory.glob(pattern)]
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


def remove_left_locks(directory: Path, near: Path) -> None:
    """Remove the locks in git's directory that no living git process can have made.

    Which locks a process has cannot be seen: git closes the file, and keeps the lock while a hook or
    an editor runs. So a lock is kept while any git that works in or below `near` is older than it.
    Locks of a git that works elsewhere (by `GIT_DIR`), or of programs that are not git, are removed.

    Raises:
        OSError: one cannot be removed.
    """
    if locks := git_locks(directory):
        oldest = min(_git_starts(near), default=float("inf"))
        for lock in locks:
            with suppress(FileNotFoundError):
                if lock.lstat().st_mtime < oldest - _CLOCK_SECONDS:
                    lock.unlink()


_CLOCK_SECONDS = 1.0
"""Tolerance for rounding when the times of a file and a process are compared."""


def _git_starts(near: Path) -> Iterator[float]:
    """Yield when the living git processes in or below a directory were started, in Unix time."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    for pid in process_ids():
        if (read_name(pid) or "").startswith("git"):
            with suppress(OSError):
                place = (PROC / str(pid) / "cwd").readlink()
                ref = find(pid)
                if ref and place.is_relative_to(near):
                    yield booted + ref.started / os.sysconf("SC_CLK_TCK")
