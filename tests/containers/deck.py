"""A service on a listener of its own, with replicas that dial home to it."""

import asyncio
import base64
import json
from typing import Any

import httpx

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.container_engine import ContainerEngine
from quarterdeck.sandboxes.containers import ContainerDriver, HomeAddress
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.listeners import Bound, Listener, TcpListener, UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import ServiceParts, build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.support.waiting import WAIT_SECONDS, eventually

SLOW_SECONDS = 2 * WAIT_SECONDS
"""Seconds that starting a container, or another node in place of a lost one, may take."""
COMMAND_SECONDS = 50
"""The most that a command may be given: some wait for something."""
AGENTS = [Agent(id="builtin", name="Built-in", available=True)]


class Deck:
    """`start` and `stop` are those of the service; containers outlive it."""

    kind: type[ContainerDriver] = ContainerDriver

    def __init__(
        self, home: Home, containers: ContainerEngine, host: str, database: str | None = None
    ) -> None:
        self.home = home
        self.database = database
        self.containers = containers
        self.host = host
        self.port = 0
        self.way: HomeAddress | None = None
        """Where containers reach it, if not at its own listener."""
        self.inside: asyncio.Queue[Listener] = asyncio.Queue()
        """Listeners for containers."""
        self.service: ServiceParts
        self.driver: ContainerDriver
        self.client: httpx.AsyncClient
        self._running: asyncio.Task[None] | None = None
        self._names = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def start(self) -> None:
        ready: asyncio.Future[list[Bound]] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._serve(ready))
        await asyncio.wait({self._running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()
        self.port = ready.result()[0].address[1]  # type: ignore[assignment]
        key = self.home.key.read_text().strip()
        self.client = httpx.AsyncClient(
            base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=SLOW_SECONDS
        )

    async def _serve(self, ready: asyncio.Future[list[Bound]]) -> None:
        local = ProcessDriver(self.home)
        self.driver = self.kind(
            self.home, local.mirrors, self.containers, lambda: self.way or HomeAddress(self.url)
        )
        async with open_service(
            self.home,
            local,
            lambda: AGENTS,
            self.database,
            others={"docker": self.driver},
            switchboard=self.driver.switchboard,
        ) as context:
            settings = FleetSettings(backoff=(0.01, 0.05, 0.1), link_wait=10.0)
            self.service = build_service(context, settings)
            listeners = [TcpListener(self.host, self.port), UnixListener(self.home.socket)]
            await serve(self.service, listeners, ready.set_result, inside=self.inside)

    async def stop(self) -> None:
        await self.client.aclose()
        assert self._running is not None
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def environment(self, url: str | None = None) -> str:
        if url is None:
            return (await self.get("/v1/environments/global"))["environment"]["id"]
        made = await self.post("/v1/replica/repositories", {"url": url}, 201)
        body = {"name": f"with {url}", "repository_id": made["repository"]["id"]}
        return (await self.post("/v1/environments", body, 201))["environment"]["id"]

    async def create(self, environment: str, **body: Any) -> str:
        self._names += 1
        body = {"name": f"r{self._names}", "environment_id": environment, **body}
        id = (await self.post("/v1/replica", body, 201))["replica"]["id"]
        await self.reach(id, "active")
        return id

    async def reach(self, id: str, status: str) -> dict[str, Any]:
        async def there() -> dict[str, Any] | None:
            replica = (await self.get(f"/v1/replica/{id}"))["replica"]
            assert status == "error" or replica["status"] != "error", replica["error"]
            return replica if replica["status"] == status else None

        return await eventually(there, status, SLOW_SECONDS)

    async def run(self, id: str, command: str) -> str:
        body = {"command": command, "timeout_seconds": COMMAND_SECONDS}
        done = await self.post(f"/v1/replica/{id}/exec", body)
        assert done["exit_code"] == 0, done
        return done["output"]

    async def running(self, id: str, command: str) -> str:
        """As `run`, as soon as the engine answers again."""

        async def answered() -> str | None:
            body = {"command": command, "timeout_seconds": COMMAND_SECONDS}
            answer = await self.client.post(f"/v1/replica/{id}/exec", json=body)
            return answer.json()["output"] if answer.status_code == 200 else None

        return await eventually(answered, "an answer of the engine", SLOW_SECONDS)

    async def in_terminal(self, id: str, command: str) -> str:
        base = f"/v1/workspaces/{id}/terminal/sessions"
        session = (await self.post(base, {"cols": 200, "rows": 50}, 201))["session"]["id"]
        keys = {"data": f"stty -echo; {command}; exit\n", "generation": 0, "sequence": 0}
        seen = b""
        async with self.client.stream("GET", f"{base}/{session}/stream") as response:
            # Now that somebody reads: for who comes late only the end is kept.
            await self.post(f"{base}/{session}/input", keys)
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    seen += base64.b64decode(json.loads(line[5:]).get("data", ""))
        return seen.decode(errors="replace")
