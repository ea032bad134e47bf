"""One file of a workspace as a member of an archive: what tar alone would lose is kept too.

Times have all their digits, extended attributes and access lists are kept, holes stay holes. The
members are plain pax ones: any tar reads such an archive, the attributes aside.
"""

import errno
import io
import os
import stat
import tarfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ATTRIBUTE = "QUARTERDECK.xattr."
_KEPT = ("user.", "system.posix_acl_")
_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO)
_BLOCK = 512
_COPY = 1 << 20
_NO_ATTRIBUTES = (errno.ENOTSUP, errno.EPERM, errno.EACCES)

Span = tuple[int, int]
"""Offset and length of a piece of a file that is not a hole."""


def describe(archive: tarfile.TarFile, path: Path, name: str) -> tarfile.TarInfo | None:
    """The member for a file; None for what has no content to keep, such as a socket."""
    found = path.lstat()
    if stat.S_IFMT(found.st_mode) not in _KINDS:
        return None
    member = archive.gettarinfo(str(path), name)
    member.uname = member.gname = ""
    member.mtime = int(found.st_mtime)
    attributes = {ATTRIBUTE + key: b64encode(value).decode() for key, value in _attributes(path)}
    member.pax_headers = {"mtime": exact(found.st_mtime_ns), **attributes}
    return member


def exact(nanoseconds: int) -> str:
    """A time as pax writes it, with all its digits."""
    sign, whole = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    return f"{sign}{whole // 10**9}.{whole % 10**9:09d}"


def nanoseconds(text: str) -> int:
    """The reverse of `exact`."""
    whole, _, part = text.removeprefix("-").partition(".")
    value = int(whole) * 10**9 + int(part.ljust(9, "0")[:9] or 0)
    return -value if text.startswith("-") else value


def add(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Writes a member with its content.

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
    """As GNU tar's sparse format 1.0, which the library reads by itself."""
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
        self._left = self._pieces(table, file, spans)
        self._piece = b""

    def read(self, size: int = -1) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            self._piece = self._piece or next(self._left, b"")
            if not self._piece:
                break
            part = self._piece[: size - len(taken)]
            self._piece = self._piece[len(part) :]
            taken += part
        return bytes(taken)

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
    """The pieces that hold data; the whole file where the system cannot tell."""
    found: list[Span] = []
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
            found.append((start, place - start))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return found


def _attributes(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as e:
        if e.errno in _NO_ATTRIBUTES:
            return
        raise
    for name in sorted(names):
        if name.startswith(_KEPT):
            with suppress(OSError):  # taken away meanwhile, or not ours to read
                yield name, os.getxattr(path, name, follow_symlinks=False)


def give_back(path: Path, member: tarfile.TarInfo) -> None:
    """Sets owner, mode, attributes and time of a file that was written out.

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
