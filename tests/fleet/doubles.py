"""A sandbox driver for tests: plain directories and the engine of `double_engine.py`."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from quarterdeck.sandboxes.errors import (
    ArchiveError,
    EngineAwayError,
    SandboxError,
    UnknownBaseError,
)
from quarterdeck.sandboxes.port import (
    Absence,
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
from quarterdeck.sandboxes.source_port import MirrorInfo, RefUpdate
from quarterdeck.wire.git_state import EngineRepository

ENGINE = Path(__file__).with_name("double_engine.py")
AHEAD = "ahead"
"""File beside the workspaces: how many seconds the time of engines was moved forward."""


class DoubleDriver:
    """Keeps what it knows in files, so that a later one finds the same engines."""

    saved_work = None

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: Counter[str] = Counter()
        self.provision_error: SandboxError | None = None
        self.start_error: SandboxError | None = None
        self.stop_error: SandboxError | None = None
        self.destroy_error: SandboxError | None = None
        self.pack_error: SandboxError | None = None
        self.unpack_error: SandboxError | None = None
        self.packing: asyncio.Event | None = None
        """Set when packing begins, which then goes on for ever."""
        self.gate: asyncio.Event | None = None
        """Provisioning waits for it."""
        self.preparing = 0
        self.most_preparing = 0
        self.made_on: list[str] = []
        self.skew = timedelta()
        """How far the clocks of engines that are started now are ahead of the service's."""
        self.provisioned: dict[str, list[RepositorySource]] = {}
        self.uncommitted: dict[str, dict[str, UncommittedCommit]] = {}
        self.away: Absence | None = None
        """While set, what runs the sandboxes does not answer."""

    def place(self, workspace_id: str) -> Path:
        return self.root / workspace_id

    def fault(self, workspace_id: str, name: str, on: bool = True) -> None:
        """Makes the workspace's engine do something wrong, or right again."""
        path = self.place(workspace_id) / "faults" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if on:
            path.touch()
        else:
            path.unlink(missing_ok=True)

    def let_go(self, workspace_id: str) -> None:
        """Turns that wait go on."""
        (self.place(workspace_id) / "go").touch()

    def pid(self, workspace_id: str) -> int | None:
        try:
            return int((self.place(workspace_id) / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def signal(self, workspace_id: str, number: int) -> None:
        pid = self.pid(workspace_id)
        assert pid is not None
        os.kill(pid, number)

    def running(self, workspace_id: str) -> bool:
        pid = self.pid(workspace_id)
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"

    def kill_all(self) -> None:
        """Nothing is left behind by a test."""
        for place in self.root.glob("*"):
            if place.is_dir() and self.running(place.name):
                self.signal(place.name, signal.SIGKILL)

    # The port

    async def require_engine(self) -> None:
        if self.away is not None:
            raise EngineAwayError(self.away.reason)

    def absence(self, workspace_id: str) -> Absence | None:
        return self.away

    async def isolation(self) -> Isolation:
        return Isolation("none", "tester", "This is a double.")

    async def connect_repository(
        self, repository_id: str, url: str, branch: str | None = None, private: bool = True
    ) -> MirrorInfo:
        return MirrorInfo("main", url.rsplit("/", 1)[-1])

    async def branches(self, source: RepositorySource) -> list[str]:
        return [source.default_branch, "feature"]

    async def find_base(
        self, source: RepositorySource, base: str, commit: str | None = None
    ) -> StartPoint | None:
        if base == source.default_branch and commit is None:
            return None
        if base == "feature":
            return StartPoint((f"refs/heads/{base}",), commit, branch=base)
        if base == commit:
            return StartPoint((), commit)
        raise UnknownBaseError(f"{source.name} has no branch, tag or commit {base}.")

    async def require_ref(self, source: RepositorySource, refs: Sequence[str]) -> None:
        if "refs/pull/7/head" not in refs:
            raise UnknownBaseError(f"{source.name}: its source has no {' or '.join(refs)}.")

    async def provision(
        self,
        workspace_id: str,
        repositories: list[RepositorySource],
        branch: str,
        report: Progress,
        uncommitted: Mapping[str, UncommittedCommit] = MappingProxyType({}),
    ) -> list[EngineRepository]:
        self.calls["provision"] += 1
        self.made_on.append(branch)
        self.provisioned[workspace_id] = repositories
        self.uncommitted[workspace_id] = dict(uncommitted)
        self.preparing += 1
        self.most_preparing = max(self.most_preparing, self.preparing)
        try:
            self.place(workspace_id).mkdir(parents=True, exist_ok=True)
            report("Making directories")
            if self.gate is not None:
                await self.gate.wait()
            if self.provision_error is not None:
                raise self.provision_error
        finally:
            self.preparing -= 1
        path = str(self.place(workspace_id))
        return [
            EngineRepository(id=one.id, name=one.name, path=path, default_branch=one.default_branch)  # type: ignore[arg-type]
            for one in repositories
        ]

    async def copy_files(self, source_id: str, workspace_id: str) -> bool:
        raise SandboxError("There are no files.")

    async def layout(self, workspace_id: str) -> Layout:
        place = str(self.place(workspace_id))
        return Layout(place, place, place, place)

    async def write_config(self, workspace_id: str, text: str) -> None:
        (self.place(workspace_id) / "engine.json").write_text(text)

    async def start(self, workspace_id: str, size: Size = "small") -> None:
        self.calls["start"] += 1
        if self.start_error is not None:
            raise self.start_error
        if self.running(workspace_id):
            return
        place = str(self.place(workspace_id))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(ENGINE), place, str(self.skew.total_seconds())
        )
        waiting = asyncio.create_task(process.wait())
        try:
            code = await asyncio.shield(waiting)
        finally:
            await waiting  # also when cancelled: nothing of the process is left open
        if code != 0:
            raise SandboxError("The engine did not start.", "its log")

    async def alive(self, workspace_id: str) -> bool:
        await self.require_engine()
        return self.running(workspace_id)

    async def fetch_branch(self, source: RepositorySource, branch: str) -> str:
        raise SandboxError("There are no mirrors.")

    async def local_head(self, source: RepositorySource, branch: str) -> str | None:
        return None

    async def fetch_pull_requests(self, source: RepositorySource, refs: Sequence[str]) -> None:
        raise SandboxError("There are no mirrors.")

    async def source_refs(self, source: RepositorySource) -> dict[str, str]:
        raise SandboxError("There are no mirrors.")

    async def upload_pack(
        self, source: RepositorySource, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        raise SandboxError("There are no mirrors.")
        yield b""

    async def push(
        self, source: RepositorySource, pack: AsyncIterable[bytes], updates: Sequence[RefUpdate]
    ) -> str:
        raise SandboxError("There are no mirrors.")

    async def repositories(
        self, workspace_id: str, sources: Sequence[RepositorySource]
    ) -> list[EngineRepository]:
        return []

    async def stream_command(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str,
        data: bytes = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[bytes]:
        raise SandboxError("There are no sandboxes.")
        yield b""

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_unix_connection(self.place(workspace_id) / "engine.sock")
        except FileNotFoundError as e:
            raise ConnectionError("no engine listens") from e

    async def stop(self, workspace_id: str) -> None:
        self.calls["stop"] += 1
        if self.stop_error is not None:
            raise self.stop_error
        with contextlib.suppress(ProcessLookupError, AssertionError):
            self.signal(workspace_id, signal.SIGKILL)
        while True:
            if not self.running(workspace_id):
                return
            await asyncio.sleep(0.002)

    def packed(self, workspace_id: str) -> Path:
        return self.root / f".packed-{workspace_id}"

    async def pack(self, workspace_id: str) -> None:
        self.calls["pack"] += 1
        if self.pack_error is not None:
            raise self.pack_error
        if self.packing is not None:
            self.packing.set()
            await asyncio.Event().wait()
        if self.place(workspace_id).exists():
            self.place(workspace_id).rename(self.packed(workspace_id))

    async def unpack(self, workspace_id: str, packed: bool) -> None:
        if self.unpack_error is not None:
            raise self.unpack_error
        if self.packed(workspace_id).exists():
            self.calls["unpack"] += 1
            self.packed(workspace_id).rename(self.place(workspace_id))
        elif packed and not self.place(workspace_id).exists():
            raise ArchiveError("The archive is missing.", "a path")

    async def is_local(self, url: str) -> bool:
        return url.startswith("/")

    async def require_source(self, url: str, private: bool = True, login: bool = True) -> None:
        return

    async def kept_files(self, workspace_id: str, directory: str) -> list[KeptFile]:
        return []

    async def kept_file(
        self, workspace_id: str, directory: str, name: bytes, most: int
    ) -> KeptContent | None:
        return None

    async def tidy(self, needed: Collection[str]) -> None:
        self.calls["tidy"] += 1

    async def destroy(self, workspace_id: str) -> None:
        self.calls["destroy"] += 1
        if self.destroy_error is not None:
            raise self.destroy_error
        await self.stop(workspace_id)
        shutil.rmtree(self.place(workspace_id), ignore_errors=True)
        shutil.rmtree(self.packed(workspace_id), ignore_errors=True)
