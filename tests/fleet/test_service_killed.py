"""`kill -9` of the whole service at each step, and what the next one makes of it."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from quarterdeck.local.home import Home
from tests.conftest import DATABASES
from tests.fleet.doubles import DoubleDriver
from tests.support.forked import ForkedPopen
from tests.support.waiting import WAIT_SECONDS, eventually

# Each takes seconds of waiting for processes; what the database does when it is cut off has tests
# of its own on both.
pytestmark = pytest.mark.one_database


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


ROOT = Path(__file__).parents[2]


class Killable:
    """A service in a process of its own."""

    def __init__(self, home: Home, database_url: str | None = None) -> None:
        self.home = home
        self.database_url = database_url
        self.driver = DoubleDriver(home.workspaces)
        self._process: ForkedPopen | None = None
        self._names = 0

    async def start(self) -> None:
        words = [str(self.home.root), *([self.database_url] if self.database_url else [])]
        await self.run_module("tests.fleet.serve_double", *words)

    async def run_module(self, module: str, *words: str) -> None:
        """Starts a service; returns when it is ready."""
        self._process = ForkedPopen(
            [sys.executable, "-m", module, *words], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                assert await asyncio.to_thread(self._process.stdout.readline) == b"ready\n"
        except BaseException:
            self._process.kill()  # else the thread reads for ever
            raise

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.communicate)
            self._process = None

    def client(self) -> httpx.AsyncClient:
        key = self.home.key.read_text().strip()
        return httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self.home.socket)),
            base_url="http://test",
            headers={"Authorization": f"Bearer {key}"},
            timeout=WAIT_SECONDS,
        )

    async def create(self, message: str | None = None) -> str:
        async with self.client() as client:
            environment = (await client.get("/v1/environments/global")).json()["environment"]
            self._names += 1
            body = {
                "name": f"deck{self._names}",
                "environment_id": environment["id"],
                "message": message,
            }
            answer = await client.post("/v1/replica", json=body)
            assert answer.status_code == 201, answer.text
            return answer.json()["replica"]["id"]

    async def get(self, made: str, path: str = "") -> Any:
        async with self.client() as client:
            return (await client.get(f"/v1/replica/{made}{path}")).json()

    async def reach(self, made: str, status: str) -> None:
        async def there() -> bool:
            return (await self.get(made))["replica"]["status"] == status

        await eventually(there, status)

    async def history(self, made: str, type: str) -> list[dict[str, Any]]:
        events = (await self.get(made, "/history"))["events"]
        return [one["payload"] for one in events if one["type"] == type]

    async def answered(self, made: str, count: int) -> list[str]:
        """Waits until so many turns ended; returns the texts of all turns."""

        async def ended() -> bool:
            return len(await self.history(made, "turn-result")) >= count

        await eventually(ended, f"{count} turns")
        return [one["text"] for one in await self.history(made, "user-message")]

    async def log(self, made: str) -> list[tuple[int, str]]:
        """(index, type) of the whole log, over the stream from its beginning."""
        last = (await self.get(made))["replica"]["log_index"]
        found: list[tuple[int, str]] = []
        place = 0
        async with (
            self.client() as client,
            client.stream(
                "GET", f"/v1/replica/{made}/events", headers={"Last-Event-ID": "0"}
            ) as response,
        ):
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    place = int(line[4:])
                elif line.startswith("data: "):
                    found.append((place, json.loads(line[6:])["type"]))
                    if place >= last:
                        return found
        pytest.fail("the stream ended early")

    def journaled(self, made: str) -> list[str]:
        path = self.driver.place(made) / "journal.jsonl"
        return [json.loads(line)["type"] for line in path.read_text().splitlines()]


@pytest.fixture
async def service(home: Home, database_url: str) -> AsyncIterator[Killable]:
    made = Killable(home, database_url)
    await made.start()
    try:
        yield made
    finally:
        await made.kill()
        made.driver.kill_all()


TOLD_BY_THE_SERVICE = ("engine.status.changed", "chat.created")


async def assert_complete(service: Killable, made: str) -> None:
    """The log holds every entry of the journal once, in order, without a gap in its indices."""

    async def caught_up() -> bool:
        types = [type for _, type in await service.log(made) if type not in TOLD_BY_THE_SERVICE]
        return len([one for one in types if one.startswith("chat.")]) == len(
            [one for one in service.journaled(made) if one.startswith("chat.")]
        )

    await eventually(caught_up, "the whole journal")
    log = await service.log(made)
    assert [index for index, _ in log] == list(range(1, len(log) + 1))
    of_engine = [type for _, type in log if type not in TOLD_BY_THE_SERVICE]
    assert of_engine == service.journaled(made)


@pytest.mark.long
async def test_killed_while_preparing(service: Killable) -> None:
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
        made = await service.create("hello")
        await asyncio.sleep(delay)  # where in the preparation it dies is the point
        await service.kill()
        await service.start()
        await service.reach(made, "active")
        assert await service.answered(made, 1) == ["hello"], delay
        await assert_complete(service, made)


async def test_killed_in_the_middle_of_a_turn(service: Killable) -> None:
    made = await service.create("wait for it")

    async def running() -> bool:
        return len(await service.history(made, "user-message")) == 1

    await eventually(running)
    pid = service.driver.pid(made)
    await service.kill()
    service.driver.let_go(made)  # the turn ends while there is no service
    await service.start()
    assert await service.answered(made, 1) == ["wait for it"]
    assert service.driver.pid(made) == pid
    await assert_complete(service, made)


@pytest.mark.long
async def test_killed_after_accepting_messages(service: Killable) -> None:
    made = await service.create()
    await service.reach(made, "active")
    chance = random.Random(7)
    sent: list[str] = []
    for _ in range(4):
        async with service.client() as client:
            for _ in range(chance.randint(1, 6)):
                text = f"message {len(sent)}"
                answer = await client.post(f"/v1/replica/{made}/messages", json={"message": text})
                assert answer.status_code == 200
                sent.append(text)
        await service.kill()
        await service.start()
    assert await service.answered(made, len(sent)) == sent
    await assert_complete(service, made)


@pytest.mark.long
async def test_killed_with_a_message_to_a_sleeper(service: Killable) -> None:
    made = await service.create()
    await service.reach(made, "active")
    async with service.client() as client:
        await client.post(f"/v1/workspaces/{made}/sleep")
        answer = await client.post(f"/v1/replica/{made}/messages", json={"message": "up"})
        assert answer.json()["status"] == "waking"
    await service.kill()
    await service.start()
    assert await service.answered(made, 1) == ["up"]
    await assert_complete(service, made)


@pytest.mark.long
async def test_killed_while_falling_asleep(service: Killable) -> None:
    made = await service.create("first")
    said = ["first"]
    for delay in (0.0, 0.01, 0.03, 0.1):
        assert await service.answered(made, len(said)) == said
        client = service.client()
        asked = asyncio.create_task(client.post(f"/v1/workspaces/{made}/sleep"))
        await asyncio.sleep(delay)
        await service.kill()
        await asyncio.gather(asked, return_exceptions=True)
        await client.aclose()
        await service.start()
        said.append(f"after {delay}")
        async with service.client() as client:
            await client.post(f"/v1/replica/{made}/messages", json={"message": said[-1]})
        assert await service.answered(made, len(said)) == said
        await assert_complete(service, made)


@pytest.mark.long
async def test_killed_while_deleting(service: Killable) -> None:
    for delay in (0.0, 0.005, 0.02):
        made = await service.create("one")
        await service.answered(made, 1)
        client = service.client()
        asked = asyncio.create_task(client.delete(f"/v1/replica/{made}"))
        await asyncio.sleep(delay)
        await service.kill()
        await asyncio.gather(asked, return_exceptions=True)
        await client.aclose()
        await service.start()
        await eventually(partial(_settled, service, made))
        if service.driver.place(made).exists():
            await service.reach(made, "active")
        else:
            assert not service.driver.running(made)


async def _settled(service: Killable, made: str) -> bool:
    """Whether its deletion has not begun, or is finished: never half of it."""
    async with service.client() as client:
        found = (await client.get(f"/v1/replica/{made}")).status_code == 200
    return found or not service.driver.place(made).exists()
