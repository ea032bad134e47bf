"""Agents for the tests: the built-in one, and scripts that speak the protocol by hand."""

import asyncio
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.catalog import default_catalog
from quarterdeck.agents.port import AgentSession, SessionSpec
from quarterdeck.agents.presets import Preset
from quarterdeck.agents.session.recorder import Timeouts
from quarterdeck.wire.history import AgentEvent

PRELUDE = """
import json, os, signal, subprocess, sys, time

SESSION = {"sessionId": "s1"}

def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def answer(message, result):
    send(id=message["id"], result=result)

def refuse(message, code, text, data=None):
    send(id=message["id"], error={"code": code, "message": text, "data": data})

def update(**fields):
    send(method="session/update", params={"sessionId": "s1", "update": fields})

def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})

def serve(prompt, session=SESSION, capabilities=None, **others):
    while True:
        message = read()
        handler = others.get(message.get("method", "").replace("/", "_"))
        if handler:
            handler(message)
        elif message.get("method") == "initialize":
            answer(message, {"protocolVersion": 1, "agentCapabilities": capabilities or {}})
        elif message.get("method") == "session/new":
            answer(message, session)
        elif message.get("method") == "session/prompt":
            prompt(message)
"""


@dataclass
class Heard:
    """A sink that keeps what it gets and lets a test wait for it."""

    events: list[AgentEvent] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, event: AgentEvent) -> None:
        async with self.changed:
            self.events.append(event)
            self.changed.notify_all()

    async def until(self, found: Callable[[AgentEvent], bool]) -> AgentEvent:
        """The first event that fits, waiting for it."""
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(lambda: any(map(found, self.events)))
        return next(filter(found, self.events))

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        """Payloads of one kind of session update."""
        return [e.payload for e in self.events if e.payload.get("sessionUpdate") == kind]

    def text(self) -> str:
        """Everything the agent said."""
        return "".join(p["content"]["text"] for p in self.payloads("agent_message_chunk"))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def spec(tmp_path: Path, workspace: Path) -> SessionSpec:
    return SessionSpec(
        chat_id="chat",
        working_directory=str(workspace),
        state_directory=str(tmp_path / "state"),
        environment=dict(os.environ),
    )


Opener = Callable[..., Awaitable[AgentSession]]


@pytest.fixture
async def sessions() -> AsyncIterator[list[AgentSession]]:
    opened: list[AgentSession] = []
    yield opened
    for session in opened:
        await session.close()


@pytest.fixture
def builtin(heard: Heard, spec: SessionSpec, sessions: list[AgentSession]) -> Opener:
    """Opens a session of the built-in agent."""

    async def open_session(given: SessionSpec = spec) -> AgentSession:
        session = await default_catalog().driver("builtin").open(given, heard)
        sessions.append(session)
        return session

    return open_session


@pytest.fixture
def scripted(
    tmp_path: Path, heard: Heard, spec: SessionSpec, sessions: list[AgentSession]
) -> Opener:
    """Opens a session of an agent that is written in the test."""

    async def open_session(
        body: str, given: SessionSpec = spec, timeouts: Timeouts | None = None, **preset: Any
    ) -> AgentSession:
        script = tmp_path / "agent.py"
        script.write_text(PRELUDE + textwrap.dedent(body))
        command = (sys.executable, "-I", str(script))
        driver = AcpDriver(Preset(name="Scripted", command=command, **preset), timeouts)
        session = await driver.open(given, heard)
        sessions.append(session)
        return session

    return open_session


def _running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _content(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.fixture
def appears() -> Callable[[Path], Awaitable[str]]:
    """Waits for a file that says something and returns what it says."""

    async def wait(path: Path) -> str:
        async with asyncio.timeout(60):
            while not (text := _content(path)):  # noqa: ASYNC110 (another process writes it)
                await asyncio.sleep(0.01)
        return text

    return wait


@pytest.fixture
def gone() -> Callable[..., Awaitable[bool]]:
    """Waits until none of the processes runs any more."""

    async def wait(*pids: int, within: float = 30.0) -> bool:
        try:
            async with asyncio.timeout(within):
                while any(map(_running, pids)):  # noqa: ASYNC110 (not our children: no event)
                    await asyncio.sleep(0.01)
        except TimeoutError:
            return False
        return True

    return wait
