"""Two services over one database and one container engine, of which one can be killed."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.containers import HomeAddress
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.swarm import SwarmContainers
from quarterdeck.service.db.tables import services
from tests.containers.daemons import IMAGE
from tests.containers.deck import SLOW_SECONDS, Deck
from tests.containers.front import Front
from tests.containers.losses import PREPARE, STATE, block, ended, history, rest, until_saved
from tests.containers.service_process import kill, serving
from tests.support.forked import ForkedPopen
from tests.support.postgresql import Server


@dataclass
class Pair:
    """`first` is a process that can be killed, `second` is in this one; both are behind `front`."""

    home: Home
    words: tuple[str, ...]
    second: Deck
    front: Front
    process: ForkedPopen | None = None

    async def start(self) -> httpx.AsyncClient:
        self.process, port = await serving(self.home.root.parent / "log", *self.words)
        self.front.ports.append(port)
        key = self.home.key.read_text().strip()
        return httpx.AsyncClient(
            base_url=f"http://{self.second.host}:{port}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=SLOW_SECONDS,
        )

    async def kill(self) -> None:
        if self.process is not None:
            await kill(self.process)
            self.process = None
            self.front.ports = [self.second.port]

    async def unseen(self) -> None:
        """Let the first service not have been seen for long."""
        long_ago = services.update().values(seen_at="2020-01-01T00:00:00.000Z")
        first = services.c.home_id == self.home.id.read_text().strip()
        database = self.second.service.context.database
        await database.write(lambda c: c.execute(long_ago.where(first)) and None)


@asynccontextmanager
async def paired(
    server: Server, address: str, host: str, swarm: bool = False
) -> AsyncGenerator[Pair]:
    """Two services over the container engine with this address; `host` is theirs, seen from it."""
    name = server.create()
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="qd-")))
        front = Front(host)
        await front.start()
        stack.push_async_callback(front.stop)
        home, other = Home(root / "one/home"), Home(root / "two")
        home.root.parent.mkdir()
        other.service.mkdir(mode=0o700, parents=True)
        containers = (SwarmContainers if swarm else DockerContainers)(other, IMAGE, address)
        second = Deck(other, containers, host, server.url(name))
        second.way = HomeAddress(front.url)
        place = f"swarm+{address}" if swarm else address
        words = (str(home.root), second.database or "", place, front.url, host)
        made = Pair(home, words, second, front)
        stack.push_async_callback(made.kill)
        client = await made.start()
        await client.aclose()
        shutil.copy(home.master_key, other.master_key)
        await containers.open()
        stack.push_async_callback(containers.close)
        await second.start()
        stack.push_async_callback(second.stop)
        front.ports = [second.port, *front.ports]
        yield made
    server.drop(name)


async def asleep(pair: Pair, repository: Path) -> tuple[str, str]:
    """Return a sleeping replica of the first service, which is killed, and the state of its work."""
    second = pair.second
    await pair.kill()
    first = await pair.start()
    environment = await second.environment(str(repository))
    body = {"name": "r1", "environment_id": environment}
    made = await first.post("/v1/replica", json=body)
    id = made.json()["replica"]["id"]
    await second.reach(id, "active")
    await second.run(id, PREPARE)
    await second.post(f"/v1/replica/{id}/messages", block("echo turn > turn", "echo one >> ran"))
    await ended(second, id, 1)
    before = await second.run(id, STATE)
    await rest(second, id)
    await first.aclose()
    await pair.kill()
    await pair.unseen()
    return id, before


async def works_on(pair: Pair, id: str, before: str) -> None:
    """It has all its work, the queue runs once, and the old owner leaves it alone."""
    second = pair.second
    for text in ("two", "three"):
        await second.post(f"/v1/replica/{id}/messages", block(f"echo {text} >> ran"))
    results = await ended(second, id, 3)
    assert [one["stopReason"] for one in results] == ["end_turn"] * 3
    assert await second.run(id, STATE) == before
    assert await second.run(id, "cat shop/ran shop/ignored") == "one\ntwo\nthree\nignored\n"
    assert len(await history(second, id, "user-message")) == 3
    assert await history(second, id, "git-operation") == []  # the volume, not a save
    await until_saved(second, id, "ran", "one\ntwo\nthree\n")
    inside = await second.run(id, "echo $PPID")
    async with await pair.start() as first:
        answer = await first.post(f"/v1/replica/{id}/messages", json=block("echo four >> ran"))
        assert answer.status_code == 200, answer.text
        await ended(second, id, 4)
    assert await second.run(id, "echo $PPID") == inside  # the same container
    await rest(second, id)
