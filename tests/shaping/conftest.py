"""A service with real sandboxes and engines, and environments that shape its workspaces."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import ServiceParts, build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.support.git import commit_files
from tests.support.waiting import eventually

AGENTS = [
    Agent(id="builtin", name="Built-in", available=True),
    Agent(id="gemini", name="Gemini", available=False, missing_keys=["GEMINI_API_KEY"]),
]
SETTINGS = FleetSettings(pool_interval=0.2, link_wait=10.0)


@dataclass
class Shop:
    """A running service; `start` and `stop` are those of the service alone."""

    home: Home
    settings: FleetSettings = SETTINGS
    context: ServiceContext = field(init=False)
    service: ServiceParts = field(init=False)
    client: httpx.AsyncClient = field(init=False)
    _opened: Any = None
    _running: Any = None
    _names: int = 0

    async def start(self) -> None:
        ready = asyncio.Event()
        self._opened = open_service(self.home, ProcessDriver(self.home), lambda: AGENTS)
        self.context = await self._opened.__aenter__()
        self.service = build_service(self.context, self.settings)
        self._running = asyncio.create_task(
            serve(self.service, [UnixListener(self.home.socket)], lambda _: ready.set())
        )
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({self._running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert ready.is_set(), self._running
        self.client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self.home.socket)),
            base_url="http://test",
            headers={"Authorization": f"Bearer {self.home.key.read_text().strip()}"},
            timeout=60,
        )

    async def stop(self) -> None:
        """Engines run on."""
        await self.client.aclose()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self._opened.__aexit__(None, None, None)

    @property
    def fleet(self) -> Fleet:
        return self.service.fleet

    async def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.client.request(method, path, json=body)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return answer.json()

    async def environment(self, **more: Any) -> str:
        self._names += 1
        body = {"name": f"e{self._names}", **more}
        return (await self.call("POST", "/v1/environments", body, 201))["environment"]["id"]

    async def add(self, environment: str, part: str, **body: Any) -> dict[str, Any]:
        return await self.call("POST", f"/v1/environments/{environment}/{part}", body, 201)

    async def hook(self, environment: str, kind: str, content: str) -> None:
        path = f"/v1/environments/{environment}/{kind}-hooks/save"
        await self.call("POST", path, {"content": content})

    async def begin(self, environment: str, **more: Any) -> str:
        self._names += 1
        body = {"name": f"r{self._names}", "environment_id": environment, **more}
        return (await self.call("POST", "/v1/replica", body, 201))["replica"]["id"]

    async def reach(self, id: str, status: str) -> dict[str, Any]:
        async def there() -> dict[str, Any] | None:
            replica = (await self.call("GET", f"/v1/replica/{id}"))["replica"]
            assert status == "error" or replica["status"] != "error", replica["error"]
            return replica if replica["status"] == status else None

        return await eventually(there, status)

    async def make(self, environment: str, **more: Any) -> str:
        made = await self.begin(environment, **more)
        await self.reach(made, "active")
        return made

    async def run(self, id: str, command: str) -> str:
        return (await self.call("POST", f"/v1/replica/{id}/exec", {"command": command}))["output"]

    async def events(self, id: str, type: str | None = None) -> list[dict[str, Any]]:
        stored = await self.context.event_log.read_after(id, 0, 100_000)
        told = [{"type": one.type, "payload": json.loads(one.payload_json)} for one in stored]
        return [one for one in told if type is None or one["type"] == type]

    async def pool(self, environment: str) -> dict[str, Any]:
        path = f"/v1/environments/{environment}/warm-hooks"
        return (await self.call("GET", path))["warm_pool"]

    async def pool_until(self, environment: str, **wanted: Any) -> dict[str, Any]:
        async def there() -> dict[str, Any] | None:
            pool = await self.pool(environment)
            return pool if wanted.items() <= pool.items() else None

        return await eventually(there, f"a pool with {wanted}")

    def workspaces(self) -> list[str]:
        """The workspaces on the disk."""
        return sorted(path.name for path in self.home.workspaces.glob("[!.]*"))

    async def clear(self) -> None:
        """Nothing is left behind."""
        for path in (await self.call("GET", "/v1/environments"))["environments"]:
            if await self.pool(path["id"]):
                url = f"/v1/environments/{path['id']}/warm-pools"
                await self.call("PUT", url, {"enabled": False})
        page = await self.call("GET", "/v1/replica?limit=100")
        for replica in page["replicas"]:
            await self.client.delete(f"/v1/replica/{replica['id']}")

        async def empty() -> bool:
            self.fleet.pools.nudge()
            return not self.workspaces()

        await eventually(empty, "the end of every workspace")


@pytest.fixture
async def shop(require_tool) -> AsyncIterator[Shop]:
    require_tool("bwrap")
    require_tool("git")
    with TemporaryDirectory(prefix="qd-") as directory:
        os.chmod(directory, 0o755)  # noqa: PTH101 - a path's method counts as blocking here
        made = Shop(Home(Path(directory)))
        await made.start()
        try:
            yield made
        finally:
            await made.clear()
            await made.stop()


@pytest.fixture
def skills(shop: Shop) -> Path:
    """A git repository of skills."""
    root = shop.home.root / "source" / "skills"
    (root / "review").mkdir(parents=True)
    (root / "review/SKILL.md").write_text("---\nname: review\ndescription: Reviews.\n---\nLook.\n")
    commit_files(root)
    return root


SPY = f"""#!{sys.executable}
# An agent that keeps what it was started with, and says that it has.
import json, os, sys
for line in sys.stdin:
    call = json.loads(line)
    method, answer = call.get("method"), {{}}
    if method == "initialize":
        answer = {{"protocolVersion": 1, "agentCapabilities": {{"mcpCapabilities": {{"http": True}}}}}}
    if method == "session/new":
        seen = {{"params": call["params"], "environment": dict(os.environ)}}
        with open("/home/agent/seen.json", "w") as file:
            json.dump(seen, file)
        answer = {{"sessionId": "s1"}}
    if method == "session/prompt":
        answer = {{"stopReason": "end_turn"}}
    if "id" in call:
        print(json.dumps({{"jsonrpc": "2.0", "id": call["id"], "result": answer}}), flush=True)
"""
"""A program that takes gemini's place."""
