"""A real engine in a directory of its own, in this process or in another one, and links to it."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import pytest

from quarterdeck.agents.port import AgentDriver, AgentStatus
from quarterdeck.engine.daemon import serve
from quarterdeck.engine.journal import Journal
from quarterdeck.engine.link import EngineLink
from quarterdeck.wire.agents import OwnAgent
from quarterdeck.wire.engine import DeliverMessage, EngineConfig, JournalEntry
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.permissions import Permissions
from quarterdeck.wire.setup import Setup
from quarterdeck.wire.terminals import TerminalInput
from tests.support.waiting import WAIT_SECONDS, eventually

HERE = Path(__file__).parent
SECRET = "only the service knows"


class NoAgents:
    """A catalog for tests that run no agent."""

    def statuses(self) -> list[AgentStatus]:
        return []

    def driver(self, agent_id: str) -> AgentDriver:
        raise AssertionError("no agent is expected here")

    def supports_goal(self, agent_id: str) -> bool:
        return False

    def native_goals(self, agent_id: str) -> bool:
        return False


@dataclass
class Entries:
    """Follows a link's journal and keeps what came."""

    link: EngineLink
    all: list[JournalEntry] = field(default_factory=list)

    async def read(self) -> None:
        async for entry in self.link.journal():
            self.all.append(entry)

    def types(self) -> list[str]:
        return [entry.type for entry in self.all]

    async def wait_until(self, condition: Callable[[], Any]) -> None:
        await eventually(condition)

    async def wait(self, type: str, count: int = 1, seconds: float = 60.0) -> JournalEntry:
        """The count-th entry of a type."""
        found = await eventually(
            lambda: [e for e in self.all if e.type == type][count - 1 : count],
            type,
            seconds,
        )
        return found[0]


@dataclass
class Place:
    """A run directory with its configuration, and how to reach the engine that serves it."""

    root: Path
    stack: AsyncExitStack
    repositories: list[EngineRepository] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: {"SHELL": "/bin/bash"})
    hold: bool = False
    auto_stop: float | None = None
    setup: Setup = field(default_factory=Setup)
    agents: dict[str, OwnAgent] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)
    ahead: float = 0.0
    """Seconds that the time of engines in this process is moved forward."""

    def now(self) -> float:
        return monotonic() + self.ahead

    @property
    def run_dir(self) -> Path:
        return self.root / "run"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def journal(self) -> Path:
        return self.root / "state" / "journal.jsonl"

    def configure(self) -> None:
        for name in ("run", "workspace", "state", "home"):
            (self.root / name).mkdir(exist_ok=True)
        # a shell's start-up files are not the test's; killed in them, it leaves their locks behind
        self.environment["HOME"] = str(self.root / "home")
        config = EngineConfig(
            workspace_id=uuid4(),
            secret=SECRET,
            workspace_dir=str(self.workspace),
            state_dir=str(self.root / "state"),
            run_dir=str(self.run_dir),
            isolation="none",
            repositories=self.repositories,
            environment=self.environment,
            setup=self.setup,
            agents=self.agents,
            permissions=self.permissions,
            hold_queues=self.hold,
            auto_stop_seconds=self.auto_stop,
        )
        (self.run_dir / "engine.json").write_text(config.model_dump_json())

    async def start(self, catalog: Any = NoAgents) -> asyncio.Task[None]:
        """Runs an engine in this process's loop."""
        self.configure()
        task = asyncio.create_task(serve(self.run_dir, catalog, self.now))
        self.stack.push_async_callback(stop, task)
        await eventually(lambda: (self.run_dir / "engine.sock").exists() or task.done())
        return task

    async def spawn(self, *wrap: str, program: tuple[str, ...] = ()) -> "subprocess.Popen[bytes]":
        """Runs an engine as a process of its own."""
        self.configure()
        before = self.socket_number()
        program = program or ("-I", "-m", "quarterdeck.engine", "--run-dir", str(self.run_dir))
        process = _popen([*wrap, sys.executable, *program])
        self.stack.push_async_callback(end, process)
        # A program that was being started when the engine before was killed may hold that one's
        # socket for a moment: it takes links, and nobody serves them.
        await eventually(
            lambda: (
                (self.socket_number() != before and self.answers()) or process.poll() is not None
            )
        )
        return process

    def socket_number(self) -> int | None:
        """Which socket stands under the engine's name."""
        try:
            return (self.run_dir / "engine.sock").stat().st_ino
        except FileNotFoundError:
            return None

    def answers(self) -> bool:
        import socket

        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.run_dir / "engine.sock"))
            except OSError:
                return False
            return True

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(str(self.run_dir / "engine.sock"))

    async def link(self, after: int | None = None) -> EngineLink:
        link = await EngineLink.open(*await self.connect(), SECRET, after=after)
        self.stack.push_async_callback(link.close)
        return link

    async def entries(self, after: int = 0) -> Entries:
        """A link that follows the journal."""
        entries = Entries(await self.link(after=after))
        reading = asyncio.create_task(entries.read())

        async def finish() -> None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

        self.stack.push_async_callback(finish)
        return entries


def _popen(argv: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, start_new_session=True)


async def stop(task: asyncio.Task[None]) -> None:
    """Ends an engine of this process as a signal would."""
    if not task.done():
        os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(task, WAIT_SECONDS)


async def end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
    try:
        await asyncio.to_thread(process.wait, 15)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A directory whose name is short enough for a socket's address."""
    with tempfile.TemporaryDirectory(prefix="qe-") as directory:
        yield Path(directory)


@pytest.fixture
async def place(short_dir: Path) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        yield Place(short_dir, stack)


@pytest.fixture
def wait_until() -> Callable[..., Awaitable[Any]]:
    return eventually


class Keys:
    """Types into a terminal in order."""

    def __init__(self, link: EngineLink, session: UUID) -> None:
        self._link = link
        self._session = session
        self._sequence = 0

    async def __call__(self, text: str) -> None:
        request = TerminalInput(data=text, generation=0, sequence=self._sequence)
        self._sequence += 1
        await self._link.terminal_input(self._session, request)


@pytest.fixture
def keys() -> type[Keys]:
    return Keys


@pytest.fixture
def message() -> Callable[..., DeliverMessage]:
    def make(chat_id: UUID, text: str, **more: Any) -> DeliverMessage:
        return DeliverMessage(
            chat_id=chat_id, message_id=more.pop("id", uuid4()), text=text, **more
        )

    return make


@pytest.fixture
def between_turns(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has something done once the end of the first turn is kept, before another can begin."""
    keep = Journal.append

    def have_done(act: Callable[[], Awaitable[Any]]) -> None:
        acts = [act]

        async def append(journal: Journal, *parts: Any, **how: Any) -> int:
            kept = await keep(journal, *parts, **how)
            if acts and any(getattr(p, "type", "") == "chat.turn.completed" for p in parts):
                await acts.pop()()
            return kept

        monkeypatch.setattr(Journal, "append", append)

    return have_done


@pytest.fixture
def agents() -> Any:
    """The module of test agents (also run by engines in other processes)."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("engine_test_agents", HERE / "fake_agents.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
