"""The `process` driver: sandboxes as processes of this machine, without a daemon.

ProcessDriver ── probe      what this machine can do, found once by trying it
              ├─ mirrors    a bare mirror per repository
              ├─ clones     a workspace's directories and its repositories
              ├─ archives   a workspace's files as one, and back
              └─ runtime    start, find, stop: launcher -> bubblewrap -> engine
"""

import asyncio
import errno
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.archives import Archives
from quarterdeck.sandboxes.clones import Provisioner
from quarterdeck.sandboxes.git import DiskFullError
from quarterdeck.sandboxes.guarded import write_file
from quarterdeck.sandboxes.kept import list_files, read_file
from quarterdeck.sandboxes.layout import Places, places_of
from quarterdeck.sandboxes.link import open_stream
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import (
    Isolation,
    KeptContent,
    KeptFile,
    Layout,
    MirrorInfo,
    Progress,
    RepositorySource,
    SandboxError,
    TreeFile,
)
from quarterdeck.sandboxes.probe import Machine, examine
from quarterdeck.sandboxes.record import load_book
from quarterdeck.sandboxes.removal import remove_tree
from quarterdeck.sandboxes.runtime import Runtime, socket_of
from quarterdeck.sandboxes.shown import Wanted, shown_to_sandboxes
from quarterdeck.sandboxes.source_trees import Trees
from quarterdeck.sandboxes.trees import default_tree
from quarterdeck.wire.engine import CONFIG_NAME, EngineRepository

ENGINE = (sys.executable, "-I", "-m", "quarterdeck.engine")


class ProcessDriver:
    """A `SandboxDriver` that runs engines in bubblewrap, or as plain processes without it.

    Args:
        home: the installation; workspaces and mirrors lie in it.
        sandbox_user: who runs inside when the service is root: a name or a uid. Default: the
            variable `QD_SANDBOX_USER`, else a fixed high uid that needs no account.
        engine: the engine's command, to which `--run-dir DIR` is added.
        start_limit: seconds an engine may take until its socket answers.
        grace: seconds between SIGTERM and SIGKILL in `stop`.
        wanted: programs of the person's to show to sandboxes, asked for at each start.
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
    ) -> None:
        self._home = home
        self._sandbox_user = sandbox_user
        self._mirrors = Mirrors(home.mirrors)
        self._trees = Trees(self._mirrors)
        self._archives = Archives(home)
        self._runtime = Runtime(
            self._mirrors, engine, start_limit, grace, lambda: shown_to_sandboxes(wanted(), home)
        )
        self._machine: Machine | None = None
        self._finding = asyncio.Lock()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def isolation(self) -> Isolation:
        return (await self._found()).isolation

    async def connect_repository(self, repository_id: str, url: str) -> MirrorInfo:
        with _disk_errors():
            return await self._mirrors.connect(repository_id, url)

    async def tree(self, source: RepositorySource) -> list[str]:
        with _disk_errors():
            return await default_tree(self._mirrors, source)

    async def require_source(self, url: str) -> None:
        await self._trees.require(url)

    async def read_tree(self, url: str, directory: str) -> list[TreeFile]:
        with _disk_errors():
            return await self._trees.read(url, directory)

    async def find_in_tree(self, url: str, name: str) -> list[TreeFile]:
        with _disk_errors():
            return await self._trees.find(url, name)

    async def provision(
        self, workspace_id: str, repositories: list[RepositorySource], branch: str, report: Progress
    ) -> list[EngineRepository]:
        places = places_of(self._home, workspace_id)
        confinement = (await self._found()).confinement
        provisioner = Provisioner(self._mirrors, confinement.user, confinement.mode)
        inside = confinement.layout(places).workspace_dir
        async with self._locks[workspace_id]:
            with _disk_errors():
                return await provisioner.provision(places, inside, repositories, branch, report)

    async def layout(self, workspace_id: str) -> Layout:
        machine = await self._found()
        return machine.confinement.layout(places_of(self._home, workspace_id))

    async def write_config(self, workspace_id: str, text: str) -> None:
        path = places_of(self._home, workspace_id).run / CONFIG_NAME
        machine = await self._found()
        with _disk_errors():
            await asyncio.to_thread(write_file, path, text.encode(), machine.confinement.user)

    async def start(self, workspace_id: str) -> None:
        places = places_of(self._home, workspace_id)
        machine = await self._found()
        async with self._locks[workspace_id]:
            with _disk_errors():
                await self._runtime.start(places, machine.confinement)

    async def alive(self, workspace_id: str) -> bool:
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            return await self._runtime.alive(places)

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await open_stream(socket_of(places_of(self._home, workspace_id)))

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
        # Not one at a time with packing and the like: it must not wait for them.
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

    async def tidy(self, needed: Collection[str]) -> None:
        for places in await asyncio.to_thread(self._archives.untidy):
            async with self._locks[places.root.name]:
                with _disk_errors():
                    await self._archives.tidy(places)
        with _disk_errors():
            await asyncio.to_thread(self._drop_mirrors, needed)

    def _drop_mirrors(self, needed: Collection[str]) -> None:
        places = [places_of(self._home, path.name) for path in self._home.workspaces.glob("[!.]*")]
        borrowed = [id for one in places for id in load_book(one.clones).clones]
        self._mirrors.keep({*needed, *borrowed})

    async def destroy(self, workspace_id: str) -> None:
        await self.stop(workspace_id)
        places = places_of(self._home, workspace_id)
        # out of sight first, so that a destroy cut short is not taken for a workspace
        removed = replace(places, root=places.root.with_name(f".removed-{workspace_id}"))
        async with self._locks[workspace_id]:
            with _disk_errors():
                await asyncio.to_thread(_remove, places, removed)
                await self._archives.remove(places)
        self._locks.pop(workspace_id, None)

    async def _found(self) -> Machine:
        async with self._finding:
            if self._machine is None:
                with _disk_errors():
                    self._machine = await examine(self._home, self._sandbox_user)
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
        raise SandboxError(
            f"The sandbox's files cannot be written: {e.strerror or e}.", str(e)
        ) from e
