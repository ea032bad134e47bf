"""The `process` driver: sandboxes as processes of this machine, without a daemon.

ProcessDriver ── probe      how sandboxes can run here, found once by a trial
              ├─ mirrors    a bare mirror per repository
              ├─ clones     a workspace's directories and its repositories
              ├─ archives   a workspace's files as one, and back
              ├─ disk       stops a replica that fills it
              └─ runtime    start, find, stop: launcher -> bubblewrap -> engine
"""

import asyncio
import errno
import sys
from collections import Counter, defaultdict
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Collection,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import (
    aclosing,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import replace
from types import MappingProxyType

from quarterdeck.local.files import reason_of
from quarterdeck.local.home import Home
from quarterdeck.local.processes import PROC
from quarterdeck.sandboxes.archives import Archives
from quarterdeck.sandboxes.bubblewrap import Wanted, shown_to_sandboxes
from quarterdeck.sandboxes.cgroups import find_groups
from quarterdeck.sandboxes.clones import Provisioner, clones_of, copy_workspace, default_tree
from quarterdeck.sandboxes.disk import DiskWatch, FileWatch, Report, require_room
from quarterdeck.sandboxes.errors import CloneError, DiskFullError, NotAwakeError, SandboxError
from quarterdeck.sandboxes.git import SourceGitError, no_login, stream_process
from quarterdeck.sandboxes.launch import ForkServer
from quarterdeck.sandboxes.layout import (
    Places,
    list_files,
    places_of,
    read_file,
    workspace_ids,
    write_for_user,
)
from quarterdeck.sandboxes.link import open_stream
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.outgoing import OutgoingPushes
from quarterdeck.sandboxes.port import (
    Isolation,
    KeptContent,
    KeptFile,
    Layout,
    Progress,
    RepositorySource,
    Size,
    StartPoint,
    UncommittedCommit,
)
from quarterdeck.sandboxes.probe import Machine, examine
from quarterdeck.sandboxes.record import load_book
from quarterdeck.sandboxes.runtime import Runtime, socket_of
from quarterdeck.sandboxes.sandbox import CommandOverrides
from quarterdeck.sandboxes.source_port import Login, MirrorInfo, RefUpdate, TreeFile
from quarterdeck.sandboxes.source_trees import Trees
from quarterdeck.sandboxes.sources import local_path, refuse_password
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.engine import CONFIG_NAME
from quarterdeck.wire.git_state import EngineRepository

LOOPBACKS = ("127.0.0.1", "::1")
"""The addresses of localhost."""

ENGINE = (sys.executable, "-I", "-m", "quarterdeck.engine")
ENGINE_MODULES = ("quarterdeck.engine.preloaded",)


class ProcessDriver:
    """A `LocalDriver` that runs engines in bubblewrap, or as plain processes without it.

    Args:
        home: the installation; workspaces and mirrors are in it.
        sandbox_user: who runs inside when the service is root: a name or a uid. Default: the
            variable `QD_SANDBOX_USER`, else a fixed high uid that needs no account.
        engine: the engine's command, to which `--run-dir DIR` is added.
        start_limit: seconds an engine may take until its socket answers.
        grace: seconds between SIGTERM and SIGKILL in `stop`.
        wanted: returns the user's programs to show to sandboxes, called at each start.
        login: returns git's login for an address when the user has no credentials for it.
        service: the process whose sandboxes are examined, if another.
        outgoing_private: whether any repository may have a private address.
        outgoing_proxy: whether git uses the proxies of the environment.
    """

    def __init__(
        self,
        home: Home,
        *,
        sandbox_user: str | None = None,
        engine: Sequence[str] = ENGINE,
        start_limit: float = 20.0,
        grace: float = 3.0,
        wanted: Callable[[], Wanted] = Wanted,
        login: Callable[[str], Login | None] = no_login,
        service: int | None = None,
        outgoing_private: bool = True,
        outgoing_proxy: bool = True,
    ) -> None:
        self._home = home
        self._sandbox_user = sandbox_user
        self._mirrors = Mirrors(home.mirrors, login, outgoing_private, outgoing_proxy)
        self._outgoing = OutgoingPushes(self._mirrors)
        self._own_trees = Trees(self._mirrors)
        without_login = Mirrors(home.mirrors, None, outgoing_private, outgoing_proxy)
        self._open_trees = Trees(without_login, prefix="open-tree")
        self._archives = Archives(home)
        self._groups = find_groups(PROC / str(service or "self"))
        self._runtime = Runtime(
            self._mirrors,
            engine,
            start_limit,
            grace,
            lambda: shown_to_sandboxes(wanted(), home),
            self._groups,
            ForkServer(ENGINE_MODULES if engine is ENGINE else ()),
        )
        self._machine: Machine | None = None
        self._finding = asyncio.Lock()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sent: Counter[str] = Counter()
        """Bytes that came from each replica's engine since this service started."""

    @property
    def mirrors(self) -> Mirrors:
        """The mirrors of this installation's repositories."""
        return self._mirrors

    @property
    def saved_work(self) -> None:
        """Nothing is saved: the files are in this installation."""

    @asynccontextmanager
    async def kept_ready(self) -> AsyncGenerator[None]:
        """Start engines and commands faster within the block, by processes that wait for them."""
        async with self._runtime.fork_server.kept_ready(), self._runtime.launchers.kept_ready():
            yield

    @asynccontextmanager
    async def watching_disk(self, report: Report) -> AsyncGenerator[None]:
        """Within the block, stop replicas that fill the disk; see `DiskWatch` and `FileWatch`."""
        watches = (DiskWatch(self._home, self.stop, self._sent), FileWatch(self._home, self.stop))
        watching = [asyncio.create_task(watch.run(report), name="disk") for watch in watches]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def isolation(self) -> Isolation:
        return (await self._examined()).isolation

    async def connect_repository(
        self, repository_id: str, url: str, branch: str | None = None, private: bool = True
    ) -> MirrorInfo:
        refuse_password(url)
        with _disk_errors():
            return await self._mirrors.connect(repository_id, url, branch, private)

    async def tree(self, source: RepositorySource) -> list[str]:
        with _disk_errors():
            return await default_tree(self._mirrors, source)

    async def is_local(self, url: str) -> bool:
        return await asyncio.to_thread(local_path, url) is not None

    async def require_source(self, url: str, private: bool = True, login: bool = True) -> None:
        refuse_password(url)
        await self._trees(login).require(url, private)

    async def read_tree(
        self, url: str, directory: str, private: bool = True, login: bool = True
    ) -> list[TreeFile]:
        with _disk_errors():
            return await self._trees(login).read(url, directory, private)

    async def find_in_tree(
        self, url: str, name: str, private: bool = True, login: bool = True
    ) -> list[TreeFile]:
        with _disk_errors():
            return await self._trees(login).find(url, name, private)

    def _trees(self, login: bool) -> Trees:
        return self._own_trees if login else self._open_trees

    async def branches(self, source: RepositorySource) -> list[str]:
        with _disk_errors():
            return await self._mirrors.branches(source)

    async def find_base(
        self, source: RepositorySource, base: str, commit: str | None = None
    ) -> StartPoint | None:
        with _disk_errors():
            return await self._mirrors.find_base(source, base, commit)

    async def require_ref(self, source: RepositorySource, refs: Sequence[str]) -> None:
        with _disk_errors():
            await self._mirrors.require_ref(source, refs)

    async def provision(
        self,
        workspace_id: str,
        repositories: list[RepositorySource],
        branch: str,
        report: Progress,
        uncommitted: Mapping[str, UncommittedCommit] = MappingProxyType({}),
    ) -> list[EngineRepository]:
        places = places_of(self._home, workspace_id)
        confinement = (await self._examined()).confinement
        provisioner = Provisioner(self._mirrors, confinement.user, confinement.mode)
        inside = confinement.layout(places).workspace_dir
        async with self._locks[workspace_id]:
            with _disk_errors():
                require_room(self._home)
                return await provisioner.provision(
                    places, inside, repositories, branch, report, uncommitted
                )

    async def copy_files(self, source_id: str, workspace_id: str) -> bool:
        source, places = places_of(self._home, source_id), places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            with _disk_errors():
                await copy_workspace(source, places)
        return True

    async def layout(self, workspace_id: str) -> Layout:
        machine = await self._examined()
        places = places_of(self._home, workspace_id)
        return replace(machine.confinement.layout(places), host_dir=str(places.files))

    async def write_config(self, workspace_id: str, text: str) -> None:
        path = places_of(self._home, workspace_id).run / CONFIG_NAME
        machine = await self._examined()
        with _disk_errors():
            await asyncio.to_thread(write_for_user, path, text, machine.confinement.user)

    async def start(self, workspace_id: str, size: Size = "small") -> None:
        places = places_of(self._home, workspace_id)
        machine = await self._examined()
        async with self._locks[workspace_id]:
            with _disk_errors():
                require_room(self._home)
                await self._runtime.start(places, machine.confinement, size)

    async def fetch_branch(self, source: RepositorySource, branch: str) -> str:
        with _disk_errors():
            return await self._mirrors.fetch_branch(source, branch)

    async def local_head(self, source: RepositorySource, branch: str) -> str | None:
        return await self._mirrors.local_head(source, branch)

    async def fetch_pull_requests(self, source: RepositorySource, refs: Sequence[str]) -> None:
        with _disk_errors():
            await self._mirrors.fetch_pull_requests(source, refs)

    async def source_refs(self, source: RepositorySource) -> dict[str, str]:
        with _disk_errors():
            return await self._mirrors.refs(source)

    async def upload_pack(
        self, source: RepositorySource, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._mirrors.upload_pack(source, body, protocol)) as parts:
                async for part in parts:
                    yield part
        except SourceGitError as error:
            raise CloneError(f"{source.name} cannot be fetched from.", str(error)) from error

    async def push(
        self, source: RepositorySource, pack: AsyncIterable[bytes], updates: Sequence[RefUpdate]
    ) -> str:
        with _disk_errors():
            return await self._outgoing.push(source, pack, updates)

    async def repositories(
        self, workspace_id: str, sources: Sequence[RepositorySource]
    ) -> list[EngineRepository]:
        places = places_of(self._home, workspace_id)
        inside = (await self._examined()).confinement.layout(places).workspace_dir
        return await asyncio.to_thread(clones_of, places, inside, sources)

    async def show_commit(
        self, workspace_id: str, repository: EngineRepository, source: RepositorySource, commit: str
    ) -> None:
        return  # clones borrow the objects of mirrors

    async def open_process(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> asyncio.subprocess.Process:
        """Start a command as `stream_command` does; its standard streams are pipes.

        It leads a process group. The caller waits for it.
        """
        places = places_of(self._home, workspace_id)
        if not places.files.is_dir():
            raise NotAwakeError("The replica's files cannot be reached while it sleeps.")
        confinement = (await self._examined()).confinement
        with _disk_errors():
            return await self._runtime.open_process(
                places, confinement, command, CommandOverrides(directory, dict(environment))
            )

    async def stream_command(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str,
        data: bytes = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[bytes]:
        process = await self.open_process(
            workspace_id, command, directory=directory, environment=environment
        )
        async with aclosing(stream_process(process, data)) as parts:
            async for part in parts:
                yield part

    async def require_engine(self) -> None:
        """Do nothing: processes are started by this program itself."""

    def absence(self, workspace_id: str) -> None:
        """Return None: processes are always reached."""

    async def alive(self, workspace_id: str) -> bool:
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            return await self._runtime.alive(places)

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        def received(size: int) -> None:
            self._sent[workspace_id] += size

        return await open_stream(socket_of(places_of(self._home, workspace_id)), received)

    async def dial(
        self, workspace_id: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # Sandboxes share the loopback of this machine.
        for host in LOOPBACKS:
            with suppress(OSError):
                return await asyncio.open_connection(host, port)
        raise ConnectionRefusedError(f"nothing listens on port {port}")

    async def stop(self, workspace_id: str) -> None:
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            with _disk_errors():
                await self._runtime.stop(places)

    async def pack(self, workspace_id: str) -> None:
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            with _disk_errors():
                await self._runtime.stop(places)
                await self._archives.pack(places)

    async def unpack(self, workspace_id: str, packed: bool) -> None:
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            with _disk_errors():
                await self._archives.unpack(places, packed)

    async def kept_files(self, workspace_id: str, directory: str) -> list[KeptFile]:
        # Without the lock: this must not wait for packing or similar operations.
        places = places_of(self._home, workspace_id)
        archive = self._archives.file(places)
        with _disk_errors():
            return await asyncio.to_thread(list_files, places, archive, directory)

    async def kept_file(
        self, workspace_id: str, directory: str, name: bytes, most: int
    ) -> KeptContent | None:
        places = places_of(self._home, workspace_id)
        archive = self._archives.file(places)
        with _disk_errors():
            return await asyncio.to_thread(read_file, places, archive, directory, name, most)

    async def end_abandoned(self) -> None:
        """End git processes that an earlier service of this home left."""
        await self._mirrors.git.end_abandoned()

    async def tidy(self, needed: Collection[str]) -> None:
        for places in await asyncio.to_thread(self._archives.unfinished):
            async with self._locks[places.root.name]:
                with _disk_errors():
                    await self._archives.tidy(places)
        with _disk_errors():
            await asyncio.to_thread(self._drop_mirrors, needed)

    def _drop_mirrors(self, needed: Collection[str]) -> None:
        places = [places_of(self._home, id) for id in workspace_ids(self._home)]
        borrowed = [id for place in places for id in load_book(place.clones).clones]
        self._mirrors.keep_only({*needed, *borrowed})

    async def destroy(self, workspace_id: str) -> None:
        await self.stop(workspace_id)
        places = places_of(self._home, workspace_id)
        # renamed first, so that an interrupted destroy is not mistaken for a workspace
        removed = replace(places, root=places.root.with_name(f".removed-{workspace_id}"))
        async with self._locks[workspace_id]:
            with _disk_errors():
                await asyncio.to_thread(_remove, places, removed)
                await self._archives.remove(places)
        self._locks.pop(workspace_id, None)
        self._sent.pop(workspace_id, None)

    async def _examined(self) -> Machine:
        async with self._finding:
            if self._machine is None:
                with _disk_errors():
                    self._machine = await examine(self._home, self._sandbox_user, self._groups)
            return self._machine


def _remove(places: Places, removed: Places) -> None:
    remove_tree(removed.root)
    if places.root.exists():
        places.root.rename(removed.root)
        remove_tree(removed.root)


@contextmanager
def _disk_errors() -> Generator[None]:
    try:
        yield
    except ConnectionError:
        raise
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError("The disk is full. Make room, and try again.", str(e)) from e
        raise SandboxError(f"The sandbox's files cannot be written: {reason_of(e)}.", str(e)) from e
