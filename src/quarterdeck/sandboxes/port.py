"""The service's interface to sandbox drivers.

A sandbox outlives the service: `start` returns once its first process runs, and a later service
finds it again with `alive` and `connect`. git and file work run in subprocesses or threads.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self

from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.saves import SaveFork, WorkSave


@dataclass(frozen=True)
class Absence:
    """Since when, and why, what runs the sandboxes does not answer."""

    since: datetime
    reason: str


PROCESS = "process"
"""The name of the driver that runs sandboxes as processes of the service's machine."""

Size = Literal["small", "large"]
"""How much of the machine a replica may use."""


@dataclass(frozen=True)
class Gap:
    """Something that this machine leaves open to sandboxes, and the next step that closes it."""

    message: str
    next_step: str


@dataclass(frozen=True)
class Isolation:
    """How sandboxes are kept apart on this machine.

    `mode` is `bubblewrap`, or `none` when only a plain process group is possible; `note` then says
    why. `user` names the account that runs inside. `size_limited`: a replica's processor and
    memory are limited by its size. `gaps` could be closed on another machine, `limits` are by
    design.
    """

    mode: Literal["bubblewrap", "container", "none"]
    user: str
    note: str | None = None
    limits: tuple[str, ...] = ()
    size_limited: bool = False
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True)
class StartPoint:
    """A commit of a source that a workspace starts from, instead of the default branch.

    `refs` are its possible names at the source; the first that exists is used. `commit` is the
    exact commit; without it the ref's current one. When it cannot be fetched, the workspace cannot
    be made, or if it is not `required`, starts from the default branch. `branch` is the branch of
    the source that it belongs to, if not the default one.
    """

    refs: tuple[str, ...]
    commit: str | None = None
    required: bool = True
    branch: str | None = None


@dataclass(frozen=True)
class UncommittedCommit:
    """The user's uncommitted changes: `commit` holds them, on top of the workspace's first commit.

    `pack` is a thin pack with its objects that the source lacks. It is not checked yet.
    """

    commit: str
    pack: bytes


@dataclass(frozen=True)
class RepositorySource:
    """A connected repository for a workspace; `start` is where it starts there."""

    id: str
    name: str
    url: str
    default_branch: str
    start: StartPoint | None = None

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Return the source that an entry of a workspace's row names."""
        fields, start = dict(entry), entry.get("start")
        if start is not None:
            fields["start"] = StartPoint(**start | {"refs": tuple(start["refs"])})
        return cls(**fields)


@dataclass(frozen=True)
class KeptFile:
    """A plain file of a workspace; `name` is relative to the requested directory."""

    name: bytes
    size: int


@dataclass(frozen=True)
class KeptContent:
    """A file's whole size, and the requested start of it."""

    size: int
    data: bytes


@dataclass(frozen=True)
class Layout:
    """Paths of a workspace as its own processes see them."""

    workspace_dir: str
    home_dir: str
    state_dir: str
    run_dir: str
    interpreter: tuple[str, ...] = (sys.executable, "-I")
    """The command that runs a module of ours inside, with `-m` and its name."""
    host_dir: str | None = None
    """Where the workspace's files are on this machine; None when they are elsewhere."""
    service_url: str | None = None
    """The service for callers inside; null when nothing inside reaches it."""
    service_ca: str | None = None
    """The file inside of the certificate that they check the service's against, if it is pinned."""


Progress = Callable[[str], None]
"""Receives the progress of a longer step, line by line."""


class Concern(str):
    """A line of progress that a person should also see after the step."""


class SandboxStreams(Protocol):
    """Byte streams into running sandboxes."""

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a byte stream to the engine.

        Raises:
            ConnectionError: no engine listens.
        """
        ...

    async def dial(
        self, workspace_id: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a byte stream to a program that listens on a port of the sandbox's loopback.

        Raises:
            ConnectionError: nothing listens there, or the sandbox cannot be reached.
        """
        ...


class SandboxFiles(Protocol):
    """What remains of a workspace while nothing of it runs."""

    async def pack(self, workspace_id: str) -> None:
        """Pack all files of a stopped sandbox into an archive, then remove them.

        Cancelled or killed anywhere, the files are either still there or in the archive. Packing
        again has no effect.

        Raises:
            SandboxError: the disk is full, or a file cannot be read; the files are still there.
        """
        ...

    async def unpack(self, workspace_id: str, packed: bool) -> None:
        """Bring packed files back as they were; nothing happens when they are there.

        `packed` says that there must be an archive if there are no files. Cancelled or killed
        anywhere, it can be repeated.

        Raises:
            ArchiveError: the archive is missing or damaged.
            SandboxError: the disk is full; the archive is still there.
        """
        ...

    async def kept_files(self, workspace_id: str, directory: str) -> list[KeptFile]:
        """Return the plain files below a directory of HOME, packed or not; about 100,000 at most.

        They are read from outside: the engine need not run, packed files stay packed, and no link
        is followed.

        Raises:
            ArchiveError: the archive is damaged.
        """
        ...

    async def kept_file(
        self, workspace_id: str, directory: str, name: bytes, most: int
    ) -> KeptContent | None:
        """Return one of them, `most` bytes of it; None when there is no such file.

        Raises:
            ArchiveError: as `kept_files`.
        """
        ...


class SavedWork(Protocol):
    """Saves of the work in sandboxes whose files are elsewhere (`sandboxes.saves`)."""

    notices: dict[str, str]

    async def known(self, workspace_id: str, sources: Sequence[RepositorySource]) -> list[str]: ...

    async def receive(
        self, workspace_id: str, sources: Sequence[RepositorySource], output: AsyncGenerator[bytes]
    ) -> WorkSave: ...

    async def files(self, workspace_id: str, prefix: str) -> list[KeptFile]: ...

    async def fork(self, source_id: str, workspace_id: str, fork: SaveFork) -> None: ...

    def upload_pack(
        self, workspace_id: str, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]: ...


class SandboxDriver(SandboxStreams, SandboxFiles, Protocol):
    """Provisions, starts, finds and destroys sandboxes, each named by its workspace's id."""

    @property
    def saved_work(self) -> SavedWork | None:
        """The saves; None where the files of sandboxes are in this installation."""
        ...

    async def isolation(self) -> Isolation:
        """Return how sandboxes are kept apart here (found once, then cached).

        Raises:
            IsolationError: sandboxes cannot run here at all.
        """
        ...

    async def provision(
        self,
        workspace_id: str,
        repositories: list[RepositorySource],
        branch: str,
        report: Progress,
        uncommitted: Mapping[str, UncommittedCommit] = MappingProxyType({}),
    ) -> list[EngineRepository]:
        """Make the workspace's directories and clone its repositories, each on `branch`.

        Mirrors are updated first when their source can be reached. Called again for an existing
        workspace, it adds what is missing and leaves the rest alone.

        Args:
            uncommitted: changes that new clones start with, by id of the repository.

        Raises:
            CloneError: a repository could not be cloned.
            SandboxError: the disk is full, or a directory cannot be made.
        """
        ...

    async def copy_files(self, source_id: str, workspace_id: str) -> bool:
        """Copy another workspace's files, without HOME, to one that has none yet; safe to repeat.

        Cancelled or killed anywhere, it has all of them or none. False: it needs `SavedWork.fork`.

        Raises:
            SandboxError: the other one has no files, or they cannot be copied.
        """
        ...

    async def layout(self, workspace_id: str) -> Layout:
        """Return the paths inside the sandbox, for the engine's configuration."""
        ...

    async def write_config(self, workspace_id: str, text: str) -> None:
        """Write the engine's configuration into the run directory, readable by it alone."""
        ...

    async def start(self, workspace_id: str, size: Size = "small") -> None:
        """Start the engine in its sandbox and return when its socket answers.

        An engine that already runs is left alone. `size` bounds what the sandbox uses, where
        `isolation` says so.

        Raises:
            SandboxError: it did not come up; `details` holds the end of its log.
        """
        ...

    async def repositories(
        self, workspace_id: str, sources: Sequence[RepositorySource]
    ) -> list[EngineRepository]:
        """Return those of a workspace's repositories that are already in it."""
        ...

    async def show_commit(
        self, workspace_id: str, repository: EngineRepository, source: RepositorySource, commit: str
    ) -> None:
        """Make a commit that was fetched from a source readable in a workspace's clone of it.

        Raises:
            SandboxError: it cannot be brought there.
        """
        ...

    def stream_command(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str,
        data: bytes = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[bytes]:
        """Run a command in a workspace's sandbox, with or without a running engine; yield its output.

        It sees the same files as the engine, has nothing of the service's environment, and ends
        with the service, with `stop` and with the generator.

        Args:
            command: the program's absolute path inside, and its arguments.
            directory: where it runs, as seen inside.
            data: its whole input.
            environment: variables besides those of every sandbox.

        Raises:
            SandboxError: the workspace has no files, because it is packed or not created yet.
            ProcessError: its exit status was not 0.
        """
        ...

    async def require_engine(self) -> None:
        """Check that sandboxes can be started now, as far as that depends on another program.

        Raises:
            EngineAwayError: what runs them does not answer.
        """
        ...

    def absence(self, workspace_id: str) -> Absence | None:
        """Return why a workspace cannot be reached, as known without asking; None when it can."""
        ...

    async def alive(self, workspace_id: str) -> bool:
        """Return whether the workspace's engine process runs.

        Raises:
            EngineAwayError: that is not known now.
        """
        ...

    async def stop(self, workspace_id: str) -> None:
        """End every process of the sandbox; files stay. Safe when nothing runs."""
        ...

    async def tidy(self, needed: Collection[str]) -> None:
        """Remove unfinished files of packing and unpacking that a killed service left.

        Also mirrors that are neither `needed` (ids) nor in a workspace here, nor newly made.
        """
        ...

    async def destroy(self, workspace_id: str) -> None:
        """Stop the sandbox and remove its files and its archive."""
        ...
