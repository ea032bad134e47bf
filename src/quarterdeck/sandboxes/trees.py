"""Walks over directories of any depth, by descriptors.

A path has at most 4096 bytes, and a program inside can make directories far deeper. So a directory
is opened relative to the one above it, and only the current one is open.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_USABLE = 0o700
REMOVED_AT_ONCE = 50_000
"""Entries of a directory that are read before they are removed: a program can make millions in one, and 300
bytes are needed for each."""
_CHUNK = 4000
"""Bytes of a relative path that are opened at once."""


@dataclass(frozen=True)
class Entered:
    """A directory whose content comes next. `path` is relative to the top, which is `""`."""

    descriptor: int
    path: str
    entries: list[os.DirEntry[str]]

    def file(self, name: str) -> Path:
        """Return a short path of an entry, valid while the walk is here."""
        return short_path(self.descriptor, name)


@dataclass(frozen=True)
class Left:
    """A directory with everything below it was visited: `name` in the directory `above`."""

    above: int
    name: str


@dataclass(frozen=True)
class _Frame:
    """A directory above the current one, and what remains to be visited in it."""

    identity: tuple[int, int]
    path_length: int
    pending: list[str]
    name: str
    mode: int


def short_path(directory: int, name: str) -> Path:
    """Return a path of a name in an open directory, however deep that is."""
    return Path(f"/proc/self/fd/{directory}/{name}")


def walk(top: Path, *, restore: bool = True, most: int | None = None) -> Generator[Entered | Left]:
    """Yield each directory of a tree when it is entered and when it is left; links stay closed.

    Nothing else may change the tree meanwhile. A directory that is closed to its owner is opened,
    and closed again when it is left unless `restore` is false. Of each directory only the first `most`
    entries are read, if given.

    Raises:
        OSError: a directory cannot be read, or was moved.
    """
    current, top_mode = _enter(os.fspath(top), None)
    frames: list[_Frame] = []
    path = ""
    try:
        entered = _entered(current, path, most)
        yield entered
        pending = _directories(entered)
        while pending or frames:
            if pending:
                name = pending.pop()
                below, mode = _enter(name, current)
                frames.append(_Frame(_identity(current), len(path), pending, name, mode))
                os.close(current)
                current, path = below, f"{path}/{name}" if path else name
                entered = _entered(current, path, most)
                yield entered
                pending = _directories(entered)
            else:
                frame = frames.pop()
                current = _ascend(current, frame, restore)
                yield Left(current, frame.name)
                path, pending = path[: frame.path_length], frame.pending
    finally:
        try:
            while frames and restore:
                current = _ascend(current, frames.pop(), restore)
        finally:
            os.close(current)
        if restore and top_mode & _USABLE != _USABLE and os.geteuid() != 0:
            top.chmod(top_mode)


def _entered(descriptor: int, path: str, most: int | None) -> Entered:
    with os.scandir(descriptor) as entries:
        read = sorted(islice(entries, most), key=lambda one: os.fsencode(one.name))
    return Entered(descriptor, path, read)


def _directories(entered: Entered) -> list[str]:
    return [one.name for one in reversed(entered.entries) if one.is_dir(follow_symlinks=False)]


def _enter(name: str, above: int | None) -> tuple[int, int]:
    """Open a directory; return its descriptor, and its mode before."""
    status = os.stat(name, dir_fd=above, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    # Without read, write or search permission a directory keeps its owner out too.
    if stat.S_ISDIR(status.st_mode) and mode & _USABLE != _USABLE and os.geteuid() != 0:
        place = os.open(name, _FLAGS | os.O_PATH, dir_fd=above)
        try:  # of exactly this directory: its name may lead elsewhere by now
            Path(f"/proc/self/fd/{place}").chmod(mode | _USABLE)
        finally:
            os.close(place)
    return os.open(name, _FLAGS, dir_fd=above), mode


def _ascend(current: int, frame: _Frame, restore: bool) -> int:
    """Return the directory above, opened; the current one is then closed."""
    above = os.open("..", _FLAGS, dir_fd=current)
    try:
        if _identity(above) != frame.identity:
            raise OSError(errno.EBUSY, "A directory was moved while it was read", frame.name)
        if restore and frame.mode & _USABLE != _USABLE and os.geteuid() != 0:
            os.fchmod(current, frame.mode)
    except BaseException:
        os.close(above)
        raise
    os.close(current)
    return above


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def open_below(top: int, path: str) -> int:
    """Return a descriptor of a directory below another, however deep; `""` is that one.

    Raises:
        OSError: it is missing, or not a directory.
    """
    current = os.dup(top)
    try:
        for step in _steps(os.fsencode(path)):
            below = os.open(step, _FLAGS, dir_fd=current)
            os.close(current)
            current = below
    except BaseException:
        os.close(current)
        raise
    return current


def _steps(path: bytes) -> Generator[bytes]:
    """Yield parts of a path that are short enough to be opened one after the other."""
    while len(path) > _CHUNK:
        end = path.rindex(b"/", 0, _CHUNK)
        yield path[:end]
        path = path[end + 1 :]
    if path:
        yield path


def remove_tree(path: Path) -> None:
    """Remove a directory tree of any depth; links are removed, not followed.

    Raises:
        OSError: something could not be removed.
    """
    if not os.path.lexists(path):
        return
    while not _remove_first(path):
        pass
    path.rmdir()


def _remove_first(path: Path) -> bool:
    """Remove the first entries of each directory in a tree; return whether these were all."""
    every = True
    for visit in walk(path, restore=False, most=REMOVED_AT_ONCE):
        match visit:
            case Entered(descriptor, _, entries):
                every = every and len(entries) < REMOVED_AT_ONCE
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.name, dir_fd=descriptor)
            case Left(above, name):
                try:
                    os.rmdir(name, dir_fd=above)
                except OSError as e:
                    if every or e.errno != errno.ENOTEMPTY:
                        raise
    return every


def temporary_name(kind: str) -> str:
    """Return a name for a temporary directory of this process; see `remove_abandoned`."""
    return f".{kind}-{os.getpid()}-{secrets.token_hex(8)}"


def remove_abandoned(directory: Path, kind: str) -> None:
    """Remove directories with a `temporary_name` whose process has ended without removing them.

    Raises:
        OSError: one could not be removed.
    """
    for path in directory.glob(f".{kind}-*"):
        pid = path.name.split("-")[1]
        if pid.isdecimal() and Path("/proc", pid).exists():
            continue
        with suppress(FileNotFoundError):  # another process removes it too
            remove_tree(path)
