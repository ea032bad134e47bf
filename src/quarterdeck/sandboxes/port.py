"""What the service asks of a sandbox driver.

A sandbox outlives the service: `start` returns once its first process runs, and a service that
comes later finds it again with `alive` and talks to it through `connect`. Nothing here blocks the
loop; git and file work run in subprocesses or threads that the driver owns.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from quarterdeck.wire.engine import EngineRepository


class SandboxError(Exception):
    """The driver could not do what was asked. `args[0]` is for a person; `details` may hold output."""

    def __init__(self, message: str, details: str | None = None) -> None:
        super().__init__(message)
        self.details = details


class NotARepositoryError(SandboxError):
    """The URL or path names no git repository."""


class CloneError(SandboxError):
    """Cloning failed; `details` holds git's last lines."""


class ArchiveError(SandboxError):
    """A workspace's archive is missing or damaged; what there is of it was left alone."""


class IsolationError(SandboxError):
    """No sandbox can be run here; says why and what to do."""


@dataclass(frozen=True)
class Isolation:
    """How sandboxes are kept apart on this machine.

    `mode` is `bubblewrap`, or `none` when only a plain process group is possible; `note` then says
    why. `user` names the account that runs inside.
    """

    mode: Literal["bubblewrap", "none"]
    user: str
    note: str | None = None
    limits: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepositorySource:
    """A connected repository to put into a workspace."""

    id: str
    name: str
    url: str
    default_branch: str


@dataclass(frozen=True)
class MirrorInfo:
    """What connecting a repository found.

    `url` is its own address: for a path within a checkout, the checkout's top level.
    """

    default_branch: str
    suggested_name: str
    url: str | None = None


@dataclass(frozen=True)
class TreeFile:
    """A file of a source's directory; `path` is relative to that directory."""

    path: str
    content: bytes
    executable: bool = False


@dataclass(frozen=True)
class KeptFile:
    """A plain file of a workspace; `name` is relative to the directory that was asked for."""

    name: bytes
    size: int


@dataclass(frozen=True)
class KeptContent:
    """A file's whole size, and the beginning of it that was asked for."""

    size: int
    data: bytes


@dataclass(frozen=True)
class Layout:
    """Paths of a workspace as its own processes see them."""

    workspace_dir: str
    home_dir: str
    state_dir: str
    run_dir: str
    service_socket: str | None = None
    """The service's socket for callers inside; null when nothing inside reaches the service."""


Progress = Callable[[str], None]
"""Told one line at a time what a longer step is doing."""


class Concern(str):
    """A line of progress that a person should know of when the step is done, too."""


class SandboxDriver(Protocol):
    """Provisions, starts, finds and destroys sandboxes, each named by its workspace's id."""

    async def isolation(self) -> Isolation:
        """How sandboxes are kept apart here (found once, then remembered).

        Raises:
            IsolationError: sandboxes cannot run here at all.
        """
        ...

    async def connect_repository(self, repository_id: str, url: str) -> MirrorInfo:
        """Makes the service's bare mirror of a repository.

        Raises:
            NotARepositoryError: nothing there that git can read.
            CloneError: it is a repository, but mirroring it failed.
        """
        ...

    async def tree(self, source: RepositorySource) -> list[str]:
        """The files of a connected repository's default branch, by its mirror.

        The mirror is brought up to date first when that goes quickly.

        Raises:
            SandboxError: there is no mirror, or it cannot be read.
        """
        ...

    async def require_source(self, url: str) -> None:
        """Looks whether a source can be there: one on this machine has to be, or have a mirror.

        Nothing is asked of other machines.

        Raises:
            NotARepositoryError: it is not there, or the address is none.
        """
        ...

    async def read_tree(self, url: str, directory: str) -> list[TreeFile]:
        """Every plain file below a directory of a source; `""` is its top.

        A directory of this machine is read as it lies there, anything else through a mirror, which
        also serves while its source cannot be reached.

        Raises:
            SandboxError: no such source or directory, or more than is taken.
        """
        ...

    async def find_in_tree(self, url: str, name: str) -> list[TreeFile]:
        """Every plain file of one name in a source, wherever it lies; read as by `read_tree`.

        Raises:
            SandboxError: no such source, or more files of that name than are taken.
        """
        ...

    async def provision(
        self, workspace_id: str, repositories: list[RepositorySource], branch: str, report: Progress
    ) -> list[EngineRepository]:
        """Makes the workspace's directories and clones its repositories, each on `branch`.

        Mirrors are brought up to date first when their source can be reached. Asked again for a
        workspace that is already there, it finishes what is missing and leaves the rest alone.

        Raises:
            CloneError: a repository could not be cloned.
            SandboxError: the disk is full, or a directory cannot be made.
        """
        ...

    async def layout(self, workspace_id: str) -> Layout:
        """Paths inside the sandbox, for the engine's configuration."""
        ...

    async def write_config(self, workspace_id: str, text: str) -> None:
        """Writes the engine's configuration into the run directory, readable by it alone."""
        ...

    async def start(self, workspace_id: str) -> None:
        """Starts the engine in its sandbox and returns when its socket answers.

        An engine that already runs is left alone.

        Raises:
            SandboxError: it did not come up; `details` holds the end of its log.
        """
        ...

    async def alive(self, workspace_id: str) -> bool:
        """Whether the workspace's engine process runs."""
        ...

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Opens a byte stream to the engine.

        Raises:
            ConnectionError: no engine listens.
        """
        ...

    async def stop(self, workspace_id: str) -> None:
        """Ends every process of the sandbox; files stay. Safe when nothing runs."""
        ...

    async def pack(self, workspace_id: str) -> None:
        """Puts the files of a stopped sandbox into an archive, whole, and then removes them.

        Cancelled or killed anywhere, the files are either still there or in the archive. Packed
        already: nothing happens.

        Raises:
            SandboxError: the disk is full, or a file cannot be read; the files are still there.
        """
        ...

    async def unpack(self, workspace_id: str, packed: bool) -> None:
        """Brings packed files back as they were; nothing happens when they are there.

        `packed` says that there has to be an archive if there are no files. Cancelled or killed
        anywhere, it can be asked again.

        Raises:
            ArchiveError: the archive is missing or damaged.
            SandboxError: the disk is full; the archive is still there.
        """
        ...

    async def kept_files(self, workspace_id: str, directory: str) -> list[KeptFile]:
        """Every plain file below a directory of HOME, wherever the workspace's files are.

        They are read from outside: the engine need not run, what is packed stays packed, and no
        link is followed.

        Raises:
            ArchiveError: the archive is damaged.
        """
        ...

    async def kept_file(
        self, workspace_id: str, directory: str, name: bytes, most: int
    ) -> KeptContent | None:
        """One of them, `most` bytes of it; None when there is no such file.

        Raises:
            ArchiveError: as `kept_files`.
        """
        ...

    async def tidy(self, needed: Collection[str]) -> None:
        """Removes what packing and unpacking left half made when the service was killed.

        Also the mirrors of repositories that are neither `needed` (ids) nor in a workspace here;
        one that has just been made is left alone.
        """
        ...

    async def destroy(self, workspace_id: str) -> None:
        """Stops the sandbox and removes its files and its archive."""
        ...
