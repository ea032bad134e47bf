"""A served installation with real sandboxes, real engines and a real repository."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.listeners import UnixListener
from quarterdeck.service.server import serve
from quarterdeck.service.start import open_service
from quarterdeck.wire.agents import Agent
from tests.fleet.conftest import PATIENCE, World, until

AGENTS = [Agent(id="builtin", name="Built-in", available=True)]


def git(directory: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words]
    done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class RealWorld(World):
    """As `World`, served for real: its lifespan runs, and engines are the true ones."""

    driver: Any
    _serving: asyncio.Task[None]

    async def start(self) -> None:
        self._opened = open_service(self.home, self.driver, lambda: AGENTS)
        self.context = await self._opened.__aenter__()
        self.fleet = Fleet(self.context, self.settings)
        self.context.fleet = self.fleet
        ready = asyncio.Event()
        listeners = [UnixListener(self.home.socket)]
        self._serving = asyncio.create_task(serve(self.context, listeners, lambda _: ready.set()))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({waiting, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        assert not self._serving.done(), self._serving.exception()
        self.client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self.home.socket)),
            base_url="http://test",
            headers=self.headers,
            timeout=PATIENCE * 2,
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
        body = {"name": repository.name, "repository_id": answer.json()["repository"]["id"]}
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
        from quarterdeck.service.records.workspaces import change_workspace

        await self.context.database.write(lambda c: change_workspace(c, id, status=status))


@pytest.fixture
def home() -> Iterator[Home]:
    # Not pytest's own directory: sockets have short names.
    with TemporaryDirectory(prefix="qd-") as directory:
        yield Home(Path(directory))


@pytest.fixture
async def world(home: Home) -> AsyncIterator[RealWorld]:
    made = RealWorld(home, ProcessDriver(home), FleetSettings())  # type: ignore[arg-type]
    await made.start()
    try:
        yield made
    finally:
        page = (await made.client.get("/v1/replica?limit=100")).json()
        for replica in page["replicas"]:
            await made.client.delete(f"/v1/replica/{replica['id']}")
        await made.stop()


@pytest.fixture
def repository(home: Home) -> Path:
    directory = home.root / "source" / "deck"
    directory.mkdir(parents=True)
    home.root.chmod(0o755)
    git(directory, "init", "-q", "-b", "main")
    for name in ("README.md", "src/main.py", "src/app/panel.py", "docs/guide.md"):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "first")
    return directory


__all__ = ["git", "until"]
