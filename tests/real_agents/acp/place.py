"""Where an agent works in a test: a home with its configuration, a directory, a model."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quarterdeck.agents.acp.session import AcpSession
from quarterdeck.agents.catalog import default_catalog
from quarterdeck.agents.port import AgentSession, Prompt, SessionSpec, TurnOutcome
from quarterdeck.transcript.blocks import ToolBlock
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent
from quarterdeck.wire.setup import McpServer
from tests.agents.conftest import Heard
from tests.real_agents.acp.agents import KEY, RealAgent
from tests.real_agents.model.server import Model

ALLOW, REJECT = "allow_once", "reject_once"


@dataclass
class Place:
    """Opens sessions that all use one home, and answers what they ask in one way."""

    agent: RealAgent
    root: Path
    model: Model
    heard: Heard = field(default_factory=Heard)
    servers: tuple[McpServer, ...] = ()
    answers: str = ALLOW
    sessions: list[AgentSession] = field(default_factory=list[AgentSession])
    _answering: set[asyncio.Task[bool]] = field(default_factory=set[asyncio.Task[bool]])

    def __post_init__(self) -> None:
        self.agent.require()
        self.directory.mkdir(parents=True)
        for name, text in self.agent.files(self.model.url).items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def directory(self) -> Path:
        return self.root / "workspace"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": f"{self.agent.path}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            **self.agent.variables(self.model.url),
        }

    async def open(self, **changes: Any) -> AcpSession:
        """A session of the agent; the first of its models is the one it starts with."""
        spec = SessionSpec(
            chat_id="chat",
            working_directory=str(self.directory),
            state_directory=str(self.root / "state"),
            environment=self.environment,
            key=KEY,
            mcp_servers=self.servers,
            **{"model": self.agent.models[0], **changes},
        )
        session = await default_catalog().driver(self.agent.id).open(spec, self._hear)
        self.sessions.append(session)
        assert isinstance(session, AcpSession)
        return session

    async def close(self) -> None:
        for session in self.sessions:
            await session.close()
        await asyncio.gather(*self._answering)

    async def _hear(self, event: AgentEvent) -> None:
        await self.heard(event)
        if event.type == "acp-permission_request":
            answer = asyncio.create_task(self._answer(self.sessions[-1], event.payload))
            self._answering.add(answer)
            answer.add_done_callback(self._answering.discard)

    async def _answer(self, session: AgentSession, asked: dict[str, Any]) -> bool:
        option = next(one["optionId"] for one in asked["options"] if one["kind"] == self.answers)
        return await session.respond(asked["requestId"], option, None)


@dataclass
class Talk:
    """One test's part of a session."""

    place: Place
    session: AcpSession
    told: list[AgentEvent] = field(default_factory=list[AgentEvent])
    """What was heard before this test's part."""

    def begin_part(self) -> None:
        """Have nothing heard so far."""
        self.told += self.heard.events
        self.heard.events.clear()

    @property
    def agent(self) -> RealAgent:
        return self.place.agent

    @property
    def heard(self) -> Heard:
        return self.place.heard

    @property
    def model(self) -> Model:
        return self.place.model

    def file(self, name: str) -> Path:
        return self.place.directory / name

    async def say(self, *lines: str, answers: str = ALLOW, **prompt: Any) -> TurnOutcome:
        """One turn with a script for the model."""
        self.place.answers = answers
        return await self.session.prompt(Prompt("m", "\n".join(lines), **prompt))

    def begin(self, *lines: str) -> asyncio.Task[TurnOutcome]:
        self.place.answers = ALLOW
        return asyncio.create_task(self.session.prompt(Prompt("m", "\n".join(lines))))

    @property
    def tools(self) -> list[ToolBlock]:
        """The calls of tools, as they are shown."""
        return [one for one in Transcript(self.heard.events).blocks if isinstance(one, ToolBlock)]

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [e.payload for e in self.heard.events if e.type == "acp-permission_request"]


Waiter = Callable[[Path], Awaitable[str]]
