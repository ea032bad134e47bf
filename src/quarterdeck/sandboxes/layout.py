"""Directories of a workspace, and safe access to files that an agent may have changed.

Files of a workspace's HOME are read from outside without its engine, unpacked or packed. A program
inside may put a link or a pipe where the service expects a file, and following one would give the
program access outside its sandbox. So reading never follows links and accepts only plain files, and
writing creates new files under unique names and moves them into place.
"""

import gzip
import hashlib
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from quarterdeck.local.files import PRIVATE, write_file
from quarterdeck.local.home import INSIDE_SOCKET, Home
from quarterdeck.sandboxes.archive.packing import each_member
from quarterdeck.sandboxes.errors import ArchiveError, SandboxError
from quarterdeck.sandboxes.port import KeptContent, KeptFile, Layout
from quarterdeck.sandboxes.processes import SandboxUser

SOCKETS_INSIDE = "/run/service"
"""The directory of the service's socket for callers inside. A restarted service creates its socket
again, so the directory is shown, not the socket."""

PROGRAMS_INSIDE = "/run/programs"
"""Holds `qd`."""

INSIDE = Layout(
    workspace_dir="/workspace",
    home_dir="/home/agent",
    state_dir="/var/lib/replica",
    run_dir="/run/replica",
    service_url=f"unix:{SOCKETS_INSIDE}/{INSIDE_SOCKET}",
)
"""Paths inside a bubblewrap sandbox, the same in each."""

MIRRORS_INSIDE = "/run/mirrors"
"""Holds `<repository id>/objects` for every mirror that the workspace borrows objects from."""

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Places:
    """The directories and files of one workspace.

    `files`, `home`, `state` and `run` belong to the sandbox. The rest belongs to the service and
    is never mounted for writing, so nothing inside can forge it. `installation` is the home of the
    service, the same for each.
    """

    root: Path
    installation: Home

    @property
    def inside_sockets(self) -> Path:
        """The directory of the service's socket for callers inside, bound read-only."""
        return self.installation.inside_sockets

    @property
    def mark(self) -> str:
        """Identifies this sandbox's processes among all others on the machine.

        Not its id: a copy of an installation has workspaces of the same ids.
        """
        return hashlib.sha256(bytes(self.root.resolve())).hexdigest()[:32]

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def etc(self) -> Path:
        """Generated `passwd`, `group` and `hosts`, bound read-only."""
        return self.root / "etc"

    @property
    def programs(self) -> Path:
        """Our programs for use inside, bound read-only."""
        return self.root / "programs"

    @property
    def parts(self) -> Path:
        """Clones that are not finished yet."""
        return self.root / "parts"

    @property
    def clones(self) -> Path:
        """The repositories in the workspace (`CloneBook`)."""
        return self.root / "clones.json"

    @property
    def record(self) -> Path:
        """The running processes (`SandboxRecord`)."""
        return self.root / "sandbox.json"

    @property
    def status(self) -> Path:
        """Reports of the launcher or bubblewrap about its child: JSON lines."""
        return self.root / "status.jsonl"

    @property
    def owned_inside(self) -> tuple[Path, ...]:
        """The directories that belong to the user who runs inside."""
        return (self.files, self.home, self.state, self.run)

    @property
    def outside_layout(self) -> Layout:
        """The layout of a workspace without a mount namespace: the true paths."""
        return Layout(
            workspace_dir=str(self.files),
            home_dir=str(self.home),
            state_dir=str(self.state),
            run_dir=str(self.run),
            service_url=f"unix:{self.inside_sockets / INSIDE_SOCKET}",
        )


def places_of(home: Home, workspace_id: str) -> Places:
    """Return the places of a workspace.

    Raises:
        SandboxError: the id could leave the workspaces' directory.
    """
    if not _SAFE_ID.fullmatch(workspace_id):
        raise SandboxError(f"{workspace_id!r} is not a workspace id.")
    return Places(home.workspaces / workspace_id, home)


def workspace_ids(home: Home) -> list[str]:
    """Return the ids of workspaces with files; other directories may lie beside them."""
    return [path.name for path in home.workspaces.glob("*") if _SAFE_ID.fullmatch(path.name)]


T = TypeVar("T")

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LEVELS = 128
"""Files in directories below this depth are not listed; names of the canvas do not lead there."""
_MOST_FILES = 100_000
"""Files that are listed: those of an archive need a kilobyte each while they are. Outside of an archive every entry
counts, not only files."""
_ATTEMPTS = 3
"""Reading is repeated when a workspace is packed or unpacked meanwhile."""


def list_files(places: Places, archive: Path, directory: str) -> list[KeptFile]:
    """Return the plain files below a directory of HOME, up to `_MOST_FILES`.

    Raises:
        ArchiveError: the archive is damaged.
    """
    return _from_either(
        places,
        lambda: list(filter(None, islice(_list_directory(places.home, directory), _MOST_FILES))),
        lambda: list(packed_files(archive, f"{places.home.name}/{directory}/")),
        [],
    )


def read_file(
    places: Places, archive: Path, directory: str, name: bytes, most: int
) -> KeptContent | None:
    """Return a plain file below a directory of HOME: its size, and up to `most` bytes of it.

    Raises:
        ArchiveError: the archive is damaged.
    """
    if b".." in name.split(b"/") or b"\0" in name:
        return None
    member = f"{places.home.name}/{directory}/{os.fsdecode(name)}"
    return _from_either(
        places,
        lambda: _read_plain(places.home, directory, name, most),
        lambda: packed_file(archive, member, most),
        None,
    )


def _from_either(
    places: Places, unpacked: Callable[[], T], packed: Callable[[], T], nothing: T
) -> T:
    """Read from the directory with all files or from their archive: one exists at every moment."""
    for _ in range(_ATTEMPTS):
        if places.root.is_dir():
            result = unpacked()
            if places.root.is_dir():
                return result
        try:
            return packed()
        except FileNotFoundError:
            continue  # missing, or unpacked just now
    return nothing


def _list_directory(home: Path, directory: str) -> Iterator[KeptFile | None]:
    with _opened(home, directory.encode().split(b"/")) as top:
        if top is not None:
            yield from _list_open(top, b"", _LEVELS)


def _list_open(top: int, prefix: bytes, levels: int) -> Iterator[KeptFile | None]:
    """Yield the files below an open directory, in which programs may change things meanwhile.

    Yields None for every other entry. Entries are read one by one, since a program can make millions.
    """
    with os.scandir(top) as entries:
        for name in (entry.name for entry in entries):
            encoded = os.fsencode(name)
            try:
                status = os.stat(name, dir_fd=top, follow_symlinks=False)
                is_file = stat.S_ISREG(status.st_mode)
                yield KeptFile(prefix + encoded, status.st_size) if is_file else None
                if not stat.S_ISDIR(status.st_mode) or levels == 0:
                    continue
                below = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=top)
            except OSError:
                continue  # removed meanwhile, or closed
            try:
                yield from _list_open(below, prefix + encoded + b"/", levels - 1)
            finally:
                os.close(below)


def _read_plain(home: Path, directory: str, name: bytes, most: int) -> KeptContent | None:
    *above, last = name.split(b"/")
    with _opened(home, [*directory.encode().split(b"/"), *above]) as top:
        if top is None:
            return None
        try:
            descriptor = os.open(last, _FLAGS, dir_fd=top)
        except OSError:
            return None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            return KeptContent(status.st_size, file.read(most))


@contextmanager
def _opened(home: Path, parts: list[bytes]) -> Generator[int | None]:
    """Open a directory below another; yield None when it is missing or a link."""
    current = -1
    try:
        current = os.open(home, _FLAGS | os.O_DIRECTORY)
        for part in parts:
            child = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=current)
            os.close(current)
            current = child
    except OSError:
        if current >= 0:
            os.close(current)
        yield None
        return
    try:
        yield current
    finally:
        os.close(current)


def packed_files(archive: Path, prefix: str) -> Iterator[KeptFile]:
    """Yield the plain files of an archive whose names have a prefix, without it.

    Raises:
        ArchiveError: the archive is damaged.
        FileNotFoundError: it is missing.
    """
    with _reading(archive) as members:
        below = (
            one for one in each_member(members) if one.name.startswith(prefix) and _is_plain(one)
        )
        matches = list(islice(below, _MOST_FILES))
    linked = {member.linkname for member in matches if member.islnk()}
    sizes: dict[str, int] = {}
    if linked:  # a hard link has no content; the first name may be anywhere
        with _reading(archive) as members:
            sizes = {one.name: one.size for one in each_member(members) if one.name in linked}
    for member in matches:
        size = sizes.get(member.linkname, 0) if member.islnk() else member.size
        yield KeptFile(os.fsencode(member.name.removeprefix(prefix)), size)


def packed_file(archive: Path, name: str, most: int) -> KeptContent | None:
    """Return a plain file of an archive; raises as `packed_files`."""
    next_name: str | None = name
    while next_name is not None:
        current_name, next_name = next_name, None
        with _reading(archive) as members:
            for member in each_member(members):
                if member.name != current_name or not _is_plain(member):
                    continue
                if member.islnk() and current_name == name:
                    next_name = member.linkname
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


PRIVATE_DIRECTORY = 0o700
_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


def make_directory(path: Path, user: SandboxUser) -> bool:
    """Make a directory for the user inside; return False when it existed.

    A program inside may have closed an existing one to everybody, and nothing would start in it.
    """
    try:
        path.mkdir(mode=PRIVATE_DIRECTORY)
    except FileExistsError:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & PRIVATE_DIRECTORY != PRIVATE_DIRECTORY:
            path.chmod(mode | PRIVATE_DIRECTORY)
        return False
    if user.drop:
        os.chown(path, user.uid, user.gid)
    return True


def write_for_user(path: Path, text: str | bytes, user: SandboxUser, mode: int = PRIVATE) -> None:
    """Write a file in one step, owned by the user inside."""
    owner = (user.uid, user.gid) if user.drop else None
    write_file(path, text, mode=mode, owner=owner, durable=False)


def open_new_log(path: Path, user: SandboxUser) -> int:
    """Start a log, keeping the previous one as `NAME.1`; return a descriptor to append and read."""
    if os.path.lexists(path):
        path.replace(path.with_name(f"{path.name}.1"))
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    descriptor = os.open(path, flags, 0o600)
    if user.drop:
        os.fchown(descriptor, user.uid, user.gid)
    return descriptor


def read_tail(descriptor: int, size: int = 4096) -> str:
    """Return the last bytes of an open log, as text."""
    length = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, max(0, length - size)).decode(errors="replace").strip()


def open_socket(path: Path) -> int:
    """Return a descriptor of a socket; links are not followed.

    Raises:
        ConnectionError: no socket is there.
    """
    try:
        descriptor = os.open(path, os.O_PATH | _NO_FOLLOW)
    except OSError as e:
        raise ConnectionRefusedError(e.errno, f"no engine listens: {e.strerror}") from e
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ConnectionRefusedError("the path of the engine's socket is not a socket")
