"""A served installation with real sandboxes, real engines and a real repository."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.agents import Agent
from tests.fleet.conftest import World
from tests.support.git import git
from tests.support.waiting import WAIT_SECONDS

AGENTS = [Agent(id="builtin", name="Built-in", available=True)]


class RealWorld(World):
    """As `World`, served for real: its lifespan runs, and engines are the true ones."""

    driver: Any
    shared: str | None = None
    """The replica that the tests of a module share."""
    renew: bool = False
    """Whether a test has moved the clock, or changed what the service knows of an engine."""
    _serving: asyncio.Task[None]

    async def start(self) -> None:
        self._opened = open_service(self.home, self.driver, lambda: AGENTS)
        self.context = await self._opened.__aenter__()
        self.service = build_service(self.context, self.settings)
        ready = asyncio.Event()
        listeners = [UnixListener(self.home.socket)]
        self._serving = asyncio.create_task(serve(self.service, listeners, lambda _: ready.set()))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({waiting, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        assert not self._serving.done(), self._serving.exception()
        self.client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self.home.socket)),
            base_url="http://test",
            headers=self.headers,
            timeout=WAIT_SECONDS * 2,
        )
        answer = await self.client.get("/v1/environments/global")
        self.environment = answer.json()["environment"]["id"]

    async def stop(self) -> None:
        """As a service that is stopped: engines run on."""
        await self.client.aclose()
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        await self._opened.__aexit__(None, None, None)

    async def connect(self, repository: Path) -> str:
        """An environment with this repository."""
        answer = await self.client.post("/v1/replica/repositories", json={"url": str(repository)})
        assert answer.status_code == 201, answer.text
        self._names += 1
        body = {"name": f"e{self._names}", "repository_id": answer.json()["repository"]["id"]}
        made = await self.client.post("/v1/environments", json=body)
        return made.json()["environment"]["id"]

    async def exec(self, id: str, command: str) -> str:
        answer = await self.post(id, "/exec", {"command": command})
        assert answer.status_code == 200, answer.text
        assert answer.json()["exit_code"] == 0, answer.text
        return answer.json()["output"]

    async def sleep(self, id: str) -> None:
        answer = await self.client.post(f"/v1/workspaces/{id}/sleep")
        assert answer.status_code == 200, answer.text

    async def wake(self, id: str) -> None:
        await self.client.post(f"/v1/workspaces/{id}/wake")
        await self.reach(id, "active")

    async def set_status(self, id: str, status: str) -> None:
        """A state that only the row knows of."""
        from quarterdeck.service.replicas.rows import change_workspace

        await self.context.database.write(lambda c: change_workspace(c, id, status=status))


@asynccontextmanager
async def opened() -> AsyncGenerator[RealWorld]:
    """An installation that has no replicas at its end."""
    # Not pytest's own directory: sockets have short names.
    with TemporaryDirectory(prefix="qd-") as directory:
        home = Home(Path(directory))
        home.root.chmod(0o755)
        made = RealWorld(home, ProcessDriver(home), FleetSettings(link_wait=10.0))  # type: ignore[arg-type]
        await made.start()
        try:
            yield made
        finally:
            await clear(made)
            await made.stop()


async def clear(world: RealWorld, but: str | None = None) -> None:
    """Delete all replicas but one."""
    page = (await world.client.get("/v1/replica?limit=100")).json()
    for replica in page["replicas"]:
        if replica["id"] != but:
            await world.client.delete(f"/v1/replica/{replica['id']}")


async def usable(world: RealWorld, id: str | None) -> bool:
    """Whether a replica that tests share is as they need it; some put it to sleep."""
    answer = await world.client.get(f"/v1/replica/{id}")
    return (
        answer.status_code == 200
        and answer.json()["replica"]["status"] == "active"
        and await world.driver.alive(id)
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _world() -> AsyncIterator[RealWorld]:
    async with opened() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def world(_world: RealWorld) -> AsyncIterator[RealWorld]:
    """The installation of the module; afterwards it has only the shared replica."""
    yield _world
    if _world.renew:
        await _world.stop()
        await _world.start()
        _world.renew = False
    await clear(_world, _world.shared)


@pytest_asyncio.fixture(loop_scope="module")
async def active(world: RealWorld) -> str:
    """An active replica of the module with an empty canvas and no previews.

    A test may put it to sleep: the next one has another.
    """
    if not await usable(world, world.shared):
        await clear(world)
        world.shared = await world.create()
    await world.exec(world.shared, "rm -rf ~/.quarterdeck/canvas")
    previews = f"/v1/workspaces/{world.shared}/previews"
    for one in (await world.client.get(previews)).json()["previews"]:
        await world.client.delete(f"{previews}/{one['port']}")
    return world.shared


def make_repository(directory: Path) -> Path:
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main")
    for name in ("README.md", "src/main.py", "src/app/panel.py", "docs/guide.md"):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "first")
    return directory


@pytest.fixture
def repository(world: RealWorld) -> Path:
    """A repository of the test's own, called `deck`."""
    return make_repository(world.home.root / f"source-{uuid4()}" / "deck")
