"""Copies a workspace's files while programs inside may change them.

A program inside can replace a directory with a link at any moment, so that a path leads to files
outside of the sandbox. So every directory and file is opened by its name in the
directory above, without following links, and stays open until it is copied.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.sandboxes.archive.packing import attributes, data_spans
from quarterdeck.sandboxes.trees import short_path

DEEPEST = 1_000
"""Levels of directories: each level keeps two descriptors open."""
_CHUNK = 8 << 20
_BLOCK = 512
"""Unit of `st_blocks`."""
_CLONE = 0x40049409
"""`FICLONE`: lets two files share their content on disks that can."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = _FLAGS | os.O_DIRECTORY
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGED = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO)
"""Errors for a name that has meanwhile been removed, or become something else."""


@dataclass(frozen=True)
class _Level:
    """A directory that is being copied: both descriptors, and the names that remain."""

    source: int
    target: int
    path: str
    names: list[str]
    mode: int | None
    """The original mode of a directory that its owner could not read, until it is restored."""

    def shut(self) -> None:
        """Restore the directory's original mode."""
        if self.mode is not None:
            os.fchmod(self.source, self.mode)

    def close(self) -> None:
        self.shut()
        os.close(self.source)
        os.close(self.target)


def copy(source: Path, target: Path) -> None:
    """Copy everything below a directory to a new one. What is removed meanwhile may be missing.

    Links are copied as links; sockets are left out. Nobody else may reach the new directory.

    Raises:
        OSError: something cannot be read or written, or lies too deep.
    """
    copier = _Copier(target)
    mode = _make_usable(None, str(source), 0o500)
    copier.enter(os.open(source, _DIRECTORY), "", mode)
    copier.run()


class _Copier:
    def __init__(self, top: Path) -> None:
        self._top = top
        self._levels: list[_Level] = []
        self._links: dict[tuple[int, int], str] = {}
        """Where a file with several names was copied to."""

    def run(self) -> None:
        """Copy what remains, level by level."""
        try:
            while self._levels:
                level = self._levels[-1]
                if level.names:
                    self._copy(level, level.names.pop())
                    continue
                level.shut()
                _copy_metadata(level.source, level.target)
                self._levels.pop().close()
        finally:
            for level in self._levels:
                level.close()

    def enter(self, source: int, path: str, mode: int | None) -> None:
        """Begin with an open directory; `path` is relative to the top, `mode` that of `_make_usable`."""
        try:
            if len(self._levels) > DEEPEST:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:80])
            if self._levels:
                above = self._levels[-1].target
                name = path.rpartition("/")[2]
                os.mkdir(name, 0o700, dir_fd=above)
                target = os.open(name, _DIRECTORY, dir_fd=above)
            else:
                self._top.mkdir(0o700)
                target = os.open(self._top, _DIRECTORY)
        except BaseException:
            if mode is not None:
                os.fchmod(source, mode)
            os.close(source)
            raise
        self._levels.append(_Level(source, target, path, os.listdir(source), mode))

    def _copy(self, level: _Level, name: str) -> None:
        try:
            status = os.stat(name, dir_fd=level.source, follow_symlinks=False)
        except FileNotFoundError:
            return
        path = f"{level.path}/{name}" if level.path else name
        match stat.S_IFMT(status.st_mode):
            case stat.S_IFDIR:
                mode = _make_usable(level.source, name, 0o500)
                if (opened := _open(level.source, name, _DIRECTORY)) is not None:
                    self.enter(opened, path, mode)
            case stat.S_IFREG:
                self._copy_file(level, name, path)
            case stat.S_IFLNK:
                with suppress(OSError):  # it is something else by now
                    os.symlink(os.readlink(name, dir_fd=level.source), name, dir_fd=level.target)
                    _give(short_path(level.target, name), status)
            case stat.S_IFIFO:
                os.mkfifo(name, dir_fd=level.target)
                pipe = short_path(level.target, name)
                pipe.chmod(stat.S_IMODE(status.st_mode))
                _give(pipe, status)
            case _:
                return

    def _copy_file(self, level: _Level, name: str, path: str) -> None:
        mode = _make_usable(level.source, name, 0o400)
        # Not waiting: it may be a pipe by now.
        source = _open(level.source, name, _FLAGS | os.O_NONBLOCK)
        if source is None:
            return
        try:
            if mode is not None:
                os.fchmod(source, mode)
            status = os.fstat(source)
            if not stat.S_ISREG(status.st_mode) or self._linked(level, name, path, status):
                return
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            target = os.open(name, flags, 0o600, dir_fd=level.target)
            try:
                _copy_content(source, target, status)
                _copy_metadata(source, target)
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _linked(self, level: _Level, name: str, path: str, status: os.stat_result) -> bool:
        """Give the copy of a file another name, if the file was copied under one."""
        if status.st_nlink < 2:
            return False
        first = self._links.setdefault((status.st_dev, status.st_ino), path)
        if first == path:
            return False
        os.link(self._top / first, name, dst_dir_fd=level.target, follow_symlinks=False)
        return True


def _make_usable(above: int | None, name: str, needed: int) -> int | None:
    """Let the owner read what a program has closed to it; return the mode before, None if that is enough."""
    if os.geteuid() == 0 or (place := _open(above, name, _PLACE)) is None:
        return None
    try:
        mode = os.fstat(place).st_mode
        if stat.S_ISLNK(mode) or mode & needed == needed:
            return None
        short_path(place, "").chmod(stat.S_IMODE(mode) | needed)
        return stat.S_IMODE(mode)
    finally:
        os.close(place)


def _open(above: int | None, name: str, flags: int) -> int | None:
    """Open a name in a directory; return None when it has become something else."""
    try:
        return os.open(name, flags, dir_fd=above)
    except OSError as e:
        if e.errno in _CHANGED:
            return None
        raise


def _copy_content(source: int, target: int, status: os.stat_result) -> None:
    size = status.st_size
    with suppress(OSError):
        fcntl.ioctl(target, _CLONE, source)
        return
    whole = status.st_blocks * _BLOCK >= size
    for start, length in [(0, size)] if whole else data_spans(source, size):
        place, end = start, start + length
        while place < end:
            data = os.pread(source, min(end - place, _CHUNK), place)
            if not data:
                break  # it became shorter
            place += os.pwrite(target, data, place)
    if not whole:
        os.ftruncate(target, size)


def _copy_metadata(source: int, target: int) -> None:
    """Copy owner, mode, attributes and times of an open file."""
    status = os.fstat(source)
    if os.geteuid() == 0:
        os.fchown(target, status.st_uid, status.st_gid)
    os.fchmod(target, stat.S_IMODE(status.st_mode))
    for name, value in attributes(source):
        os.setxattr(target, name, value)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _give(target: Path, status: os.stat_result) -> None:
    """Copy owner and times of a link or a pipe."""
    if os.geteuid() == 0:
        os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
