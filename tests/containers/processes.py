"""A container engine for tests: real engine processes that dial home, without any container."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from quarterdeck.sandboxes.container_engine import Container, Launch
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.git import stream_process
from quarterdeck.sandboxes.port import Isolation, Layout, Progress

PROGRAM = (sys.executable, "-I", "-m", "quarterdeck.engine")


class ProcessContainers:
    """`fault` is raised by every look at a container while it is set."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.digests: dict[str, str] = {}
        self.launches: list[Launch] = []
        self.fault: SandboxError | None = None

    def place(self, workspace_id: str) -> Path:
        return self.root / workspace_id

    def layout(self, workspace_id: str) -> Layout:
        place = self.place(workspace_id)
        return Layout(
            *(str(place / name) for name in ("workspace", "home", "state", "run")),
            interpreter=(sys.executable, "-I"),
        )

    moves = False

    @property
    def absence(self) -> None:
        return None

    async def require(self) -> None:
        pass

    async def isolation(self) -> Isolation:
        return Isolation("container", "tester")

    def _environment(self, workspace_id: str) -> dict[str, str]:
        # With git-remote-qd, as in the image.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.place(workspace_id) / "home")}

    async def start(self, launch: Launch, report: Progress) -> None:
        self.launches.append(launch)
        place = self.place(launch.workspace_id)
        for name in ("workspace", "home", "state", "run"):
            (place / name).mkdir(parents=True, exist_ok=True)
        with (place / "log").open("wb") as log:
            self.processes[launch.workspace_id] = await asyncio.create_subprocess_exec(
                *PROGRAM,
                *("--run-dir", str(place / "run"), "--dial-home"),
                stderr=log,
                env={**self._environment(launch.workspace_id), **launch.environment},
                start_new_session=True,
            )
        self.digests[launch.workspace_id] = launch.digest

    async def find(self, workspace_id: str) -> Container:
        if self.fault is not None:
            raise self.fault
        process = self.processes.get(workspace_id)
        if process is None or process.returncode is not None:
            return Container("gone")
        return Container("running", self.digests[workspace_id])

    async def ended(self, workspace_id: str) -> str:
        await self.processes[workspace_id].wait()
        return (self.place(workspace_id) / "log").read_text()

    async def stop(self, workspace_id: str) -> None:
        process = self.processes.pop(workspace_id, None)
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def has_volume(self, workspace_id: str) -> bool:
        return self.place(workspace_id).is_dir()

    async def note_files(self, workspace_id: str) -> None:
        return

    async def destroy(self, workspace_id: str) -> None:
        await self.stop(workspace_id)
        shutil.rmtree(self.place(workspace_id), ignore_errors=True)

    async def run(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str = "/",
        data: bytes | AsyncIterator[bytes] = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
        source_id: str | None = None,
    ) -> AsyncGenerator[bytes]:
        self.place(workspace_id).mkdir(parents=True, exist_ok=True)
        words = [
            word.replace("/source", str(self.place(source_id))) if source_id else word
            for word in command
        ]
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=directory,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**self._environment(workspace_id), **environment},
            start_new_session=True,
        )
        whole = data if isinstance(data, bytes) else b"".join([part async for part in data])
        async for part in stream_process(process, whole):
            yield part

    async def tidy(self) -> None:
        return

    async def kill_all(self) -> None:
        for workspace_id in [*self.processes]:
            await self.stop(workspace_id)


class SharedContainers(ProcessContainers):
    """The same for several services, each in a process of its own: what runs is noted on the disk."""

    def _note(self, workspace_id: str) -> Path:
        return self.root / f"{workspace_id}.json"

    async def start(self, launch: Launch, report: Progress) -> None:
        await super().start(launch, report)
        pid = self.processes[launch.workspace_id].pid
        written = self._note(launch.workspace_id).with_suffix(".new")
        written.write_text(json.dumps([pid, launch.digest]))
        written.replace(self._note(launch.workspace_id))  # others read it meanwhile

    async def find(self, workspace_id: str) -> Container:
        try:
            _, digest = self._running(workspace_id)
        except (FileNotFoundError, ProcessLookupError):  # the second when it ends just then
            return Container("gone")
        return Container("running", digest)

    def _running(self, workspace_id: str) -> tuple[int, str]:
        pid, digest = json.loads(self._note(workspace_id).read_text())
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
            raise FileNotFoundError
        return pid, digest

    async def stop(self, workspace_id: str) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.killpg(json.loads(self._note(workspace_id).read_text())[0], signal.SIGKILL)
        self._note(workspace_id).unlink(missing_ok=True)
        await super().stop(workspace_id)

    async def kill_all(self) -> None:
        for note in [*self.root.glob("*.json")]:
            await self.stop(note.stem)
