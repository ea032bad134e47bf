"""A service with a fleet over doubled sandboxes, and ways to look at what happened in it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from quarterdeck.local.home import Home
from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import ServiceParts, build_service, open_service
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.base import utc_now
from tests.fleet.doubles import AHEAD, DoubleDriver
from tests.support.waiting import eventually

AGENTS = [
    Agent(id="builtin", name="Built-in", available=True),
    Agent(id="gemini", name="Gemini", available=True),
    Agent(id="codex", name="Codex", available=False, reason="codex is not installed."),
]
SETTINGS = FleetSettings(
    link_wait=10.0,  # an active replica may not be linked yet, on a busy machine
    link_limit=5.0,
    call_limit=10.0,
    drain_limit=5.0,
    backoff=(0.01, 0.05),
    redelivery=(0.05,),
)
WAIT_SECONDS = 60.0


class Time:
    """The time of a service and its engines, which tests move forward."""

    def __init__(self, world: "World") -> None:
        self._file = world.driver.root / AHEAD
        self._ahead = timedelta()
        world.context.clock = self

    def __call__(self) -> datetime:
        return utc_now() + self._ahead

    def move(self, **by: float) -> None:
        self._ahead += timedelta(**by)
        new = self._file.with_suffix(".new")
        new.write_text(str(self._ahead.total_seconds()))
        new.replace(self._file)


@dataclass
class World:
    """One installation; `start` and `stop` are those of its service."""

    home: Home
    driver: DoubleDriver
    settings: FleetSettings
    database_url: str | None = None
    agents: list[Agent] = field(default_factory=lambda: AGENTS)
    others: dict[str, DoubleDriver] = field(default_factory=dict)
    context: ServiceContext = field(init=False)
    service: ServiceParts = field(init=False)
    client: httpx.AsyncClient = field(init=False)
    environment: str = field(init=False)
    _opened: Any = None
    _names: int = 0

    async def start(self) -> None:
        self._opened = open_service(
            self.home, self.driver, lambda: self.agents, self.database_url, others=self.others
        )
        self.context = await self._opened.__aenter__()
        self.service = build_service(self.context, self.settings)
        await self.fleet.start()
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(build_app(self.service)),
            base_url="http://test",
            headers=self.headers,
        )
        answer = await self.client.get("/v1/environments/global")
        self.environment = answer.json()["environment"]["id"]

    async def stop(self) -> None:
        """As a service that is stopped: engines run on."""
        await self.client.aclose()
        await self.fleet.close()
        await self._opened.__aexit__(None, None, None)

    @property
    def fleet(self) -> Fleet:
        return self.service.fleet

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.home.key.read_text().strip()}"}

    async def create(self, wait: bool = True, **body: Any) -> str:
        """A replica; active when this returns, unless told not to wait."""
        self._names += 1
        body = {"name": f"r{self._names}", "environment_id": self.environment, **body}
        answer = await self.client.post("/v1/replica", json=body)
        assert answer.status_code == 201, answer.text
        made = answer.json()["replica"]["id"]
        if wait:
            await self.reach(made, "active")
        return made

    async def get(self, id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/replica/{id}")
        assert answer.status_code == 200, answer.text
        return answer.json()["replica"]

    async def reach(self, id: str, status: str) -> dict[str, Any]:
        """Waits until a replica is in a state."""

        async def there() -> dict[str, Any] | None:
            replica = await self.get(id)
            assert status == "error" or replica["status"] != "error", replica["error"]
            return replica if replica["status"] == status else None

        return await eventually(there, f"{status}")

    async def post(self, id: str, path: str, body: Any = None) -> httpx.Response:
        return await self.client.post(f"/v1/replica/{id}{path}", json=body)

    async def send(self, id: str, message: str, **body: Any) -> dict[str, Any]:
        answer = await self.post(id, "/messages", {"message": message, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def events(self, id: str, type: str | None = None) -> list[dict[str, Any]]:
        """The whole log, or the payloads of one type in it."""
        stored = await self.context.event_log.read_after(id, 0, 100_000)
        if type is not None:
            return [json.loads(one.payload_json) for one in stored if one.type == type]
        return [
            {"index": one.index, "type": one.type, "payload": json.loads(one.payload_json)}
            for one in stored
        ]

    async def states(self, id: str) -> list[str]:
        """The states that the log tells of, in order."""
        told = await self.events(id, "engine.status.changed")
        return [one["workspaceStatus"] for one in told if "workspaceStatus" in one]

    async def done(self, id: str, message_id: str) -> list[dict[str, Any]]:
        """Waits for the end of a message's turn; returns all ends of it, which should be one."""

        async def ended() -> list[dict[str, Any]]:
            ends = await self.events(id, "chat.turn.completed")
            return [one for one in ends if one["messageId"] == message_id]

        return await eventually(ended, "the end of a turn")

    async def queue(self, id: str, chat_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/replica/{id}/chats/{chat_id}/queue")
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def settings() -> FleetSettings:
    return SETTINGS


@pytest.fixture
def home() -> Iterator[Home]:
    # Not pytest's own directory: sockets have short names.
    with TemporaryDirectory(prefix="qd-") as directory:
        yield Home(Path(directory))


@pytest.fixture
async def world(
    home: Home, settings: FleetSettings, database_kind: str, database_url: str
) -> AsyncIterator[World]:
    # In SQLite the home's own file, as without the option.
    url = None if database_kind == "sqlite" else database_url
    made = World(home, DoubleDriver(home.workspaces), settings, url)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
        made.driver.kill_all()


@pytest.fixture
async def scripted(
    home: Home, settings: FleetSettings, database_kind: str, database_url: str
) -> AsyncIterator[World]:
    """A world with real engines, whose agents follow a script (`scripted_agent.py`)."""
    from tests.fleet import scripted

    url = None if database_kind == "sqlite" else database_url
    made = World(home, scripted.ForkedDriver(home.workspaces), settings, url)
    made.agents = scripted.AGENTS
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
        made.driver.kill_all()


@pytest.fixture
async def served(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """The same service on a real server, for streams."""
    ready = asyncio.Event()
    running = asyncio.create_task(
        serve(world.service, [UnixListener(world.home.socket)], lambda _: ready.set())
    )
    await ready.wait()
    transport = httpx.AsyncHTTPTransport(uds=str(world.home.socket))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers=world.headers, timeout=WAIT_SECONDS
    ) as client:
        yield client
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
