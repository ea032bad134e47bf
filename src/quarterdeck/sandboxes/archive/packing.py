"""Packs and unpacks a workspace, including what tar alone would lose.

Times have all their digits, extended attributes and access lists are kept, holes stay holes. The
members are plain pax ones: any tar reads such an archive, except for the attributes.
"""

import ctypes
import errno
import gzip
import io
import os
import stat
import tarfile
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

ATTRIBUTE = "QUARTERDECK.xattr."
_ATTRIBUTES = ("user.", "system.posix_acl_")
_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO)
_BLOCK = 512
_COPY = 1 << 20
_NO_ATTRIBUTES = (errno.ENOTSUP, errno.EPERM, errno.EACCES)

Span = tuple[int, int]
"""Offset and length of a piece of a file that is not a hole."""


def describe(archive: tarfile.TarFile, path: Path, name: str) -> tarfile.TarInfo | None:
    """Return the member for a file; None for files without content, such as sockets."""
    status = path.lstat()
    if stat.S_IFMT(status.st_mode) not in _KINDS:
        return None
    member = archive.gettarinfo(str(path), name)
    member.uname = member.gname = ""
    member.mtime = int(status.st_mtime)
    attributes = {ATTRIBUTE + key: b64encode(value).decode() for key, value in _attributes(path)}
    member.pax_headers = {"mtime": exact(status.st_mtime_ns), **attributes}
    return member


def exact(nanoseconds: int) -> str:
    """Return a time in pax format, with all its digits."""
    sign, whole = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    return f"{sign}{whole // 10**9}.{whole % 10**9:09d}"


def nanoseconds(text: str) -> int:
    """Return the reverse of `exact`."""
    whole, _, part = text.removeprefix("-").partition(".")
    value = int(whole) * 10**9 + int(part.ljust(9, "0")[:9] or 0)
    return -value if text.startswith("-") else value


def add(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a member with its content.

    Raises:
        OSError: it cannot be read, or the archive cannot be written.
    """
    if not member.isreg():
        archive.addfile(member)
        return
    with path.open("rb", buffering=0) as file:
        spans = _spans(file.fileno(), member.size)
        if spans == [(0, member.size)] or not member.size:
            archive.addfile(member, file)
        else:
            _add_with_holes(archive, member, file, spans)


def _add_with_holes(
    archive: tarfile.TarFile, member: tarfile.TarInfo, file: io.FileIO, spans: list[Span]
) -> None:
    """Add a file in GNU tar's sparse format 1.0, which the library reads automatically."""
    numbers = [len(spans), *(number for span in spans for number in span)]
    table = "".join(f"{number}\n" for number in numbers).encode()
    table += b"\0" * (-len(table) % _BLOCK)
    member.pax_headers = {
        **member.pax_headers,
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": member.name,
        "GNU.sparse.realsize": str(member.size),
    }
    member.size = len(table) + sum(length for _, length in spans)
    archive.addfile(member, io.BytesIO(table) if not spans else _Pieces(table, file, spans))


class _Pieces(io.RawIOBase):
    """Reads the table and then the spans of a file, one after the other."""

    def __init__(self, table: bytes, file: io.FileIO, spans: list[Span]) -> None:
        super().__init__()
        self._remaining = self._pieces(table, file, spans)
        self._piece = b""

    def read(self, size: int = -1) -> bytes:
        result = bytearray()
        while len(result) < size:
            self._piece = self._piece or next(self._remaining, b"")
            if not self._piece:
                break
            part = self._piece[: size - len(result)]
            self._piece = self._piece[len(part) :]
            result += part
        return bytes(result)

    def _pieces(self, table: bytes, file: io.FileIO, spans: list[Span]) -> Iterator[bytes]:
        yield table
        for offset, length in spans:
            file.seek(offset)
            while length:
                data = file.read(min(length, _COPY))
                if not data:
                    raise OSError(errno.EIO, "The file became shorter while it was read")
                length -= len(data)
                yield data


def _spans(descriptor: int, size: int) -> list[Span]:
    """Return the pieces that hold data; the whole file where the system does not report them."""
    spans: list[Span] = []
    place = 0
    while place < size:
        try:
            start = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as e:
            if e.errno != errno.ENXIO:
                return [(0, size)]
            break  # nothing but a hole follows
        place = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        if start < place:
            spans.append((start, place - start))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return spans


def _attributes(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as e:
        if e.errno in _NO_ATTRIBUTES:
            return
        raise
    for name in sorted(names):
        if name.startswith(_ATTRIBUTES):
            with suppress(OSError):  # removed meanwhile, or not readable by us
                yield name, os.getxattr(path, name, follow_symlinks=False)


def restore_metadata(path: Path, member: tarfile.TarInfo) -> None:
    """Set owner, mode, attributes and time of a file that was written out.

    Raises:
        OSError: they cannot be set.
    """
    link = stat.S_ISLNK(path.lstat().st_mode)
    if os.geteuid() == 0:
        os.chown(path, member.uid, member.gid, follow_symlinks=False)
    if not link:
        path.chmod(member.mode)
    for key, value in member.pax_headers.items():
        if key.startswith(ATTRIBUTE):
            name = key.removeprefix(ATTRIBUTE)
            os.setxattr(path, name, b64decode(value), follow_symlinks=False)
    time = nanoseconds(str(member.pax_headers["mtime"]))
    os.utime(path, ns=(time, time), follow_symlinks=False)


LEVEL = 3
"""Compression level: higher ones gain little for much time."""
_CHUNK = 1 << 20


class DamagedError(Exception):
    """The archive contains something that our archives never do."""


def pack(tree: Path, archive: Path, left_out: frozenset[str]) -> None:
    """Write everything below a directory, and sync it. Nothing may change it meanwhile.

    Args:
        left_out: names directly below the tree that are not packed.

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
    """Files and directories that their owner may not read: made readable, and restored after."""

    def __init__(self) -> None:
        self._modes: list[tuple[Path, int]] = []

    def open(self, path: Path) -> None:
        mode = path.lstat().st_mode
        needed = 0o500 if stat.S_ISDIR(mode) else 0o400
        if os.geteuid() == 0 or stat.S_ISLNK(mode) or mode & needed == needed:
            return
        self._modes.append((path, stat.S_IMODE(mode)))
        path.chmod(stat.S_IMODE(mode) | needed)

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
    """Yield everything below a directory, a directory before what is in it."""
    waiting = [tree]
    while waiting:
        current = waiting.pop()
        closed.open(current)
        with os.scandir(current) as entries:
            sorted_entries = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        for entry in sorted_entries:
            if current == tree and entry.name in left_out:
                continue
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))


def unpack(archive: Path, tree: Path) -> None:
    """Make a directory with an archive's content, and sync it. Reads to the archive's last byte.

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
                pass  # the checksum is at the end
    except gzip.BadGzipFile as e:
        raise DamagedError(str(e)) from e
    # Last: writing into a directory needs its mode, and changes its time.
    for name in reversed(directories):
        restore_metadata(tree / name, directories[name])
    _sync(tree)


def _sync(directory: Path) -> None:
    """Wait until the directory's file system is written to the disk."""
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
            f"it contains something that is not a file: {member.name} ({stat.filemode(member.mode)})"
        )
    restore_metadata(path, member)
