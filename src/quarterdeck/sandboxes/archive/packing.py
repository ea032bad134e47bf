"""Writing a tree into an archive, and an archive into a tree."""

import ctypes
import gzip
import os
import stat
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from quarterdeck.sandboxes.archive.entries import add, describe, give_back

LEVEL = 3
"""Of the compression: beyond it, little is won for much time."""
_CHUNK = 1 << 20


class DamagedError(Exception):
    """The archive holds what no archive of ours does."""


def pack(tree: Path, archive: Path, left_out: frozenset[str]) -> None:
    """Writes everything below a directory, and syncs it. Nothing may change there meanwhile.

    Args:
        left_out: names directly below the tree that are not kept.

    Raises:
        OSError: something cannot be read, or the archive cannot be written.
    """
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with (
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=LEVEL, mtime=0) as squeezed,
            tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as writer,
            _opened() as closed,
        ):
            for path in _below(tree, left_out, closed):
                member = describe(writer, path, path.relative_to(tree).as_posix())
                if member is not None:
                    closed.open(path)
                    add(writer, member, path)
        file.flush()
        os.fsync(file.fileno())


class _Closed:
    """Files and directories that their owner may not read: opened for us, closed again after."""

    def __init__(self) -> None:
        self._modes: list[tuple[Path, int]] = []

    def open(self, path: Path) -> None:
        mode = path.lstat().st_mode
        wanted = 0o500 if stat.S_ISDIR(mode) else 0o400
        if os.geteuid() == 0 or stat.S_ISLNK(mode) or mode & wanted == wanted:
            return
        self._modes.append((path, stat.S_IMODE(mode)))
        path.chmod(stat.S_IMODE(mode) | wanted)

    def close(self) -> None:
        for path, mode in reversed(self._modes):
            path.chmod(mode)


@contextmanager
def _opened() -> Generator[_Closed]:
    closed = _Closed()
    try:
        yield closed
    finally:
        closed.close()


def _below(tree: Path, left_out: frozenset[str], closed: _Closed) -> Iterator[Path]:
    """Everything below a directory, a directory before what is in it."""
    waiting = [tree]
    while waiting:
        current = waiting.pop()
        closed.open(current)
        with os.scandir(current) as entries:
            found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        for entry in found:
            if current == tree and entry.name in left_out:
                continue
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))


def unpack(archive: Path, tree: Path) -> None:
    """Makes a directory with what an archive holds, and syncs it. Reads to the archive's last byte.

    Raises:
        DamagedError, TarError, EOFError, zlib.error: the archive is not whole.
        OSError: it cannot be read (BadGzipFile: it is damaged), or a file cannot be written.
    """
    tree.mkdir(mode=0o700)
    directories: dict[str, tarfile.TarInfo] = {}
    try:
        with gzip.open(archive, "rb") as squeezed:
            with tarfile.open(fileobj=squeezed, mode="r|") as reader:
                for member in reader:
                    _write(reader, member, tree, directories)
            while squeezed.read(_CHUNK):
                pass  # the check sum stands at the end
    except gzip.BadGzipFile as e:
        raise DamagedError(str(e)) from e
    # Last: writing into a directory would need the one of these, and change the other.
    for name in reversed(directories):
        give_back(tree / name, directories[name])
    _sync(tree)


def _sync(directory: Path) -> None:
    """Waits until everything of the directory's file system is on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(directory))
    finally:
        os.close(descriptor)


def _write(
    reader: tarfile.TarFile,
    member: tarfile.TarInfo,
    tree: Path,
    directories: dict[str, tarfile.TarInfo],
) -> None:
    name = PurePosixPath(member.name)
    above = str(name.parent)
    if name.is_absolute() or ".." in name.parts or (above != "." and above not in directories):
        raise DamagedError(f"it holds a file in a strange place: {member.name}")
    path = tree / name
    if member.isdir():
        path.mkdir(mode=0o700)
        directories[member.name] = member
        return
    if member.islnk():
        os.link(tree / member.linkname, path, follow_symlinks=False)
        return
    if member.issym():
        path.symlink_to(member.linkname)
    elif member.isfifo():
        os.mkfifo(path, 0o600)
    elif member.isreg():
        reader.makefile(member, str(path))
    else:
        raise DamagedError(
            f"it holds what is no file: {member.name} ({stat.filemode(member.mode)})"
        )
    give_back(path, member)
