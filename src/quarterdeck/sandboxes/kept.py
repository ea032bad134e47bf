"""Files of a workspace's HOME, read from outside without its engine: as they lie there, or packed.

What a program inside may have put there is not trusted. No link is ever followed, neither in the
directories above nor in the file itself, and only plain files count.
"""

import gzip
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from quarterdeck.sandboxes.layout import Places
from quarterdeck.sandboxes.port import ArchiveError, KeptContent, KeptFile

T = TypeVar("T")

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LOOKS = 3
"""A workspace that is packed or unpacked meanwhile is looked at again."""


def list_files(places: Places, archive: Path, directory: str) -> list[KeptFile]:
    """Every plain file below a directory of HOME.

    Raises:
        ArchiveError: the archive is damaged.
    """
    return _wherever(
        places,
        lambda: list(_lying(places.home, directory)),
        lambda: list(_packed(archive, f"{places.home.name}/{directory}/")),
        [],
    )


def read_file(
    places: Places, archive: Path, directory: str, name: bytes, most: int
) -> KeptContent | None:
    """A plain file below a directory of HOME: its size, and up to `most` bytes of it.

    Raises:
        ArchiveError: the archive is damaged.
    """
    if b".." in name.split(b"/") or b"\0" in name:
        return None
    member = f"{places.home.name}/{directory}/{os.fsdecode(name)}"
    return _wherever(
        places,
        lambda: _read_lying(places.home, directory, name, most),
        lambda: _read_packed(archive, member, most),
        None,
    )


def _wherever(places: Places, lying: Callable[[], T], packed: Callable[[], T], nothing: T) -> T:
    """There is a directory with all files or an archive of them, at every moment."""
    for _ in range(_LOOKS):
        if places.root.is_dir():
            found = lying()
            if places.root.is_dir():
                return found
        try:
            return packed()
        except FileNotFoundError:
            continue  # never there, or unpacked just now
    return nothing


def _lying(home: Path, directory: str) -> Iterator[KeptFile]:
    with _opened(home, directory.encode().split(b"/")) as top:
        if top is None:
            return
        for above, _, names, within in os.fwalk(b".", dir_fd=top):
            for name in names:
                try:
                    found = os.stat(name, dir_fd=within, follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed meanwhile
                if stat.S_ISREG(found.st_mode):
                    path = b"/".join([*above.split(b"/")[1:], name])
                    yield KeptFile(path, found.st_size)


def _read_lying(home: Path, directory: str, name: bytes, most: int) -> KeptContent | None:
    *above, last = name.split(b"/")
    with _opened(home, [*directory.encode().split(b"/"), *above]) as top:
        if top is None:
            return None
        try:
            descriptor = os.open(last, _FLAGS, dir_fd=top)
        except OSError:
            return None
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            return KeptContent(found.st_size, file.read(most))


@contextmanager
def _opened(home: Path, parts: list[bytes]) -> Generator[int | None]:
    """A directory below another; None when there is none, or a link stands in its place."""
    here = -1
    try:
        here = os.open(home, _FLAGS | os.O_DIRECTORY)
        for part in parts:
            deeper = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = deeper
    except OSError:
        if here >= 0:
            os.close(here)
        yield None
        return
    try:
        yield here
    finally:
        os.close(here)


def _packed(archive: Path, prefix: str) -> Iterator[KeptFile]:
    with _reading(archive) as members:
        found = [one for one in members if one.name.startswith(prefix) and _is_plain(one)]
    linked = {one.linkname for one in found if one.islnk()}
    sizes: dict[str, int] = {}
    if linked:  # a second name of a file holds nothing; the first may lie anywhere
        with _reading(archive) as members:
            sizes = {one.name: one.size for one in members if one.name in linked}
    for one in found:
        size = sizes.get(one.linkname, 0) if one.islnk() else one.size
        yield KeptFile(os.fsencode(one.name.removeprefix(prefix)), size)


def _read_packed(archive: Path, name: str, most: int) -> KeptContent | None:
    wanted: str | None = name
    while wanted is not None:
        looked, wanted = wanted, None
        with _reading(archive) as members:
            for member in members:
                if member.name != looked or not _is_plain(member):
                    continue
                if member.islnk() and looked == name:
                    wanted = member.linkname
                    break
                content = members.extractfile(member)
                return content and KeptContent(member.size, content.read(most))
    return None


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.isreg() or member.islnk()


@contextmanager
def _reading(archive: Path) -> Generator[tarfile.TarFile]:
    try:
        with gzip.open(archive, "rb") as squeezed, tarfile.open(fileobj=squeezed, mode="r|") as tar:
            yield tar
    except (gzip.BadGzipFile, tarfile.TarError, EOFError, zlib.error) as e:
        raise ArchiveError(
            "The archive with the replica's files is damaged. "
            "Put a whole copy in its place, then wake the replica.",
            f"{archive}: {e}",
        ) from e
