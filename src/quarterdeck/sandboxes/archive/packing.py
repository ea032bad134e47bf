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
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes

from quarterdeck.sandboxes.trees import Entered, open_below, short_path, walk

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
    # A key of a pax header is UTF-8 and ends at the first `=`.
    kept = {
        ATTRIBUTE + quote(os.fsencode(key)): b64encode(value).decode()
        for key, value in attributes(path)
    }
    member.pax_headers = {"mtime": exact(status.st_mtime_ns), **kept}
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
    with _opened(path) as file:
        spans = data_spans(file.fileno(), member.size)
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


def data_spans(descriptor: int, size: int) -> list[Span]:
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


def attributes(file: Path | int) -> Iterator[tuple[str, bytes]]:
    """Yield the extended attributes of a file, or an open one, that are kept."""
    follow = isinstance(file, int)
    try:
        names = os.listxattr(file, follow_symlinks=follow)
    except OSError as e:
        if e.errno in _NO_ATTRIBUTES:
            return
        raise
    for name in sorted(names):
        if name.startswith(_ATTRIBUTES):
            with suppress(OSError):  # removed meanwhile, or not readable by us
                yield name, os.getxattr(file, name, follow_symlinks=follow)


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
            name = unquote_to_bytes(key.removeprefix(ATTRIBUTE))
            os.setxattr(path, name, b64decode(value), follow_symlinks=False)
    time = nanoseconds(str(member.pax_headers["mtime"]))
    os.utime(path, ns=(time, time), follow_symlinks=False)


LEVEL = 3
"""Compression level: higher ones gain little for much time."""
_CHUNK = 1 << 20
PATH_LIMIT = 64 << 10
"""Bytes of a directory's path: each member names its own in full, so the archive grows with the
square of the depth."""


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
        ):
            for visit in walk(tree):
                if isinstance(visit, Entered):
                    _pack_directory(writer, visit, left_out)
        file.flush()
        os.fsync(file.fileno())


def _pack_directory(writer: tarfile.TarFile, directory: Entered, left_out: frozenset[str]) -> None:
    if len(os.fsencode(directory.path)) > PATH_LIMIT:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), directory.path[:80])
    for entry in directory.entries:
        if not directory.path and entry.name in left_out:
            continue
        name = f"{directory.path}/{entry.name}" if directory.path else entry.name
        path = directory.file(entry.name)
        member = describe(writer, path, name)
        if member is None:
            continue
        add(writer, member, path)
        _forget_members(writer)


@contextmanager
def _opened(path: Path) -> Generator[io.FileIO]:
    """Open a plain file. One that is closed to its owner is opened to it meanwhile.

    Nothing should change the files, but a command in the replica may have begun. So no link is followed.

    Raises:
        OSError: it is no longer a plain file.
    """
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(place).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EBUSY, "A file was changed while it was read", path.name)
        same = Path(f"/proc/self/fd/{place}")
        closed = os.geteuid() != 0 and not mode & 0o400
        if closed:
            same.chmod(stat.S_IMODE(mode) | 0o400)
        try:
            with same.open("rb", buffering=0) as file:
                yield file
        finally:
            if closed:
                same.chmod(stat.S_IMODE(mode))
    finally:
        os.close(place)


def unpack(archive: Path, tree: Path) -> None:
    """Make a directory with an archive's content, and sync it. Reads to the archive's last byte.

    Raises:
        DamagedError, TarError, EOFError, zlib.error: the archive is not whole.
        OSError: it cannot be read (BadGzipFile: it is damaged), or a file cannot be written.
    """
    tree.mkdir(mode=0o700)
    directories: dict[str, tarfile.TarInfo] = {}
    try:
        with closing(_NewTree(tree)) as made:
            with gzip.open(archive, "rb") as squeezed:
                with tarfile.open(fileobj=squeezed, mode="r|") as reader:
                    for member in each_member(reader):
                        _write(reader, member, made, directories)
                while squeezed.read(_CHUNK):
                    pass  # the checksum is at the end
            # Last: writing into a directory needs its mode, and changes its time.
            for name in reversed(directories):
                restore_metadata(made.path(name), directories[name])
    except (gzip.BadGzipFile, ValueError, KeyError, OverflowError) as e:
        raise DamagedError(str(e)) from e
    _sync(tree)


def each_member(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an archive, without keeping them."""
    for member in archive:
        _forget_members(archive)
        yield member


def _forget_members(archive: tarfile.TarFile) -> None:
    """Drop what the library keeps of every member that it has read or written."""
    cast("Any", archive).members.clear()


class _NewTree:
    """A tree that is written, in which directories of any depth are reached.

    The directory of the last file is kept open: the next file is usually in it.
    """

    def __init__(self, top: Path) -> None:
        self._top = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._above = ""
        self._open = os.dup(self._top)

    def path(self, name: str) -> Path:
        """Return a short path of a member, valid until the next call."""
        above, _, last = name.rpartition("/")
        if above != self._above:
            below = above.removeprefix(f"{self._above}/") if self._above else above
            start = self._top if below == above else self._open
            opened = open_below(start, below)
            os.close(self._open)
            self._open, self._above = opened, above
        return short_path(self._open, last)

    def link(self, existing: str, name: str) -> None:
        """Give a file another name."""
        above, _, last = existing.rpartition("/")
        directory = open_below(self._top, above)
        try:
            path = self.path(name)
            os.link(last, path, src_dir_fd=directory, follow_symlinks=False)
        finally:
            os.close(directory)

    def close(self) -> None:
        os.close(self._open)
        os.close(self._top)


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
    tree: _NewTree,
    directories: dict[str, tarfile.TarInfo],
) -> None:
    _check_place(member.name, directories)
    if member.islnk():
        _check_place(member.linkname, directories)
        tree.link(member.linkname, member.name)
        return
    path = tree.path(member.name)
    if member.isdir():
        path.mkdir(mode=0o700)
        directories[member.name] = member
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


def _check_place(name: str, directories: Collection[str]) -> None:
    """Check that a name is in the new tree: directly, or in a directory that the archive made.

    Raises:
        DamagedError: it is not.
    """
    above, slash, last = name.rpartition("/")
    if last in ("", ".", "..") or (slash and above not in directories):
        raise DamagedError(f"it holds a file in a strange place: {name}")
