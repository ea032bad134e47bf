"""Two services over one database: one takes the replicas of the other over when that is gone."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.containers import HomeAddress
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.service.errors import ApiError, UnknownWorkspaceError
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet.leases import Leases
from quarterdeck.wire.events import EventType
from quarterdeck.wire.saves import FILES_REF
from tests.containers.deck import Deck
from tests.containers.front import Front
from tests.containers.losses import block, ended, history, rest, until_saved, wake
from tests.containers.processes import SharedContainers
from tests.containers.service_process import kill, serving
from tests.support.forked import ForkedPopen
from tests.support.git import make_repository
from tests.support.postgresql import Server
from tests.support.waiting import WAIT_SECONDS, eventually

JUST_NOW = "UPDATE services SET seen_at = '2999-01-01T00:00:00.000Z' WHERE home_id = %s"
LONG_AGO = "UPDATE services SET seen_at = '2020-01-01T00:00:00.000Z' WHERE home_id = %s"


@dataclass
class Pair:
    """`first` is a process that can be killed, `second` is in this one; both are behind `front`."""

    home: Home
    second: Deck
    front: Front
    url: str
    server: Server
    name: str
    process: ForkedPopen | None = None
    port: int = 0

    async def start(self) -> None:
        words = (str(self.home.root), self.url, str(self.containers.root), self.front.url)
        log = self.home.root.parent / "log"
        self.process, self.port = await serving(log, *words)

    @property
    def containers(self) -> SharedContainers:
        assert isinstance(self.second.containers, SharedContainers)
        return self.second.containers

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    async def kill(self) -> None:
        if self.process is not None:
            await kill(self.process)
            self.process = None

    def client(self) -> httpx.AsyncClient:
        key = self.home.key.read_text().strip()
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=WAIT_SECONDS,
        )

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(statement.encode(), values or None)
            return [] if done.description is None else done.fetchall()

    def unseen(self) -> None:
        """Let the first service not have been seen for long."""
        self.rows(LONG_AGO, self.home.id.read_text().strip())

    @property
    def leases(self) -> Leases:
        assert self.second.service.leases is not None
        return self.second.service.leases

    async def swept(self, id: str) -> None:
        """Wait until the second service has found that a container has ended."""

        async def taken() -> bool:
            await self.leases.sweep()
            return await self.leases.holds(id)

        await eventually(taken, "the takeover")

    async def taken_over(self, id: str) -> None:
        await eventually(lambda: self.leases.holds(id), "the takeover")

    def indices(self, id: str) -> list[int]:
        statement = 'SELECT "index" FROM events WHERE workspace_id = %s ORDER BY "index"'
        return [index for (index,) in self.rows(statement, id)]

    def file(self, id: str, path: str) -> Path:
        return self.containers.place(id) / "workspace/shop" / path


@pytest.fixture
async def pair(postgresql: Server) -> AsyncIterator[Pair]:
    name = postgresql.create()
    url = postgresql.url(name)
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="qd-")))
        front = Front()
        await front.start()
        stack.push_async_callback(front.stop)
        containers = SharedContainers(root / "volumes")
        containers.root.mkdir()
        stack.push_async_callback(containers.kill_all)
        (root / "one").mkdir()
        second = Deck(Home(root / "two"), containers, "127.0.0.1", url)
        made = Pair(Home(root / "one/home"), second, front, url, postgresql, name)
        stack.push_async_callback(made.kill)
        await made.start()
        second.home.service.mkdir(mode=0o700, parents=True)
        shutil.copy(made.home.master_key, second.home.master_key)
        second.way = HomeAddress(front.url)
        await second.start()
        stack.push_async_callback(second.stop)
        # The first dial of a container goes to the service that has not started it.
        front.ports = [second.port, made.port]
        yield made
    postgresql.drop(name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def create(pair: Pair, repository: Path | None = None, name: str = "r1") -> str:
    """Return a replica of the first service."""
    environment = await pair.second.environment(repository and str(repository))
    async with pair.client() as client:
        body = {"name": name, "environment_id": environment}
        answer = await client.post("/v1/replica", json=body)
        assert answer.status_code == 201, answer.text
    id = answer.json()["replica"]["id"]
    await pair.second.reach(id, "active")
    return id


async def in_a_turn(pair: Pair, id: str) -> None:
    """Begin a turn that goes on until the file `go` is there, with two messages after it."""
    wait = "while ! [ -e go ]; do sleep 0.05; done"
    work = ("echo begun >> ran", "touch running", wait, "echo done >> ran")
    await pair.second.post(f"/v1/replica/{id}/messages", block(*work))
    for text in ("second", "third"):
        await pair.second.post(f"/v1/replica/{id}/messages", block(f"echo {text} >> ran"))
    await eventually(pair.file(id, "running").exists, "the turn")


async def went_on(pair: Pair, id: str) -> None:
    """The turn and the queue have run once, and no event is missing."""
    pair.file(id, "go").touch()
    results = await ended(pair.second, id, 3)
    assert [one["stopReason"] for one in results] == ["end_turn"] * 3
    assert pair.file(id, "ran").read_text().split() == ["begun", "done", "second", "third"]
    said = await history(pair.second, id, "user-message")
    assert len(said) == 3
    indices = pair.indices(id)
    assert indices == list(range(1, len(indices) + 1))


async def test_a_killed_service_is_replaced_in_a_turn(
    pair: Pair, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    id = await create(pair, repository)
    assert not await pair.leases.holds(id)
    before = await pair.second.run(id, "echo $PPID")
    await in_a_turn(pair, id)
    await pair.kill()
    # Not at once: it may only be restarting.
    assert not await pair.leases.take_over(id, "")
    away = await pair.second.client.post(f"/v1/replica/{id}/messages", json=block("echo late"))
    assert away.status_code == 502, away.text
    pair.unseen()
    await pair.taken_over(id)
    await went_on(pair, id)
    assert await pair.second.running(id, "echo $PPID") == before  # the same engine
    # Its work is saved here now, with its repository.
    await until_saved(pair.second, id, "ran", "begun\ndone\nsecond\nthird\n")
    # The other one is back, and passes on what it is asked.
    await pair.start()
    async with pair.client() as client:
        answer = await client.post(f"/v1/replica/{id}/messages", json=block("echo fourth >> ran"))
        assert answer.status_code == 200, answer.text
    await ended(pair.second, id, 4)
    assert pair.file(id, "ran").read_text().split()[-2:] == ["third", "fourth"]
    # A whole life goes on here.
    await rest(pair.second, id)
    await wake(pair.second, id)
    assert "fourth" in await pair.second.run(id, "cat shop/ran")
    await pair.second.client.delete(f"/v1/replica/{id}")
    assert not pair.containers.place(id).exists()
    assert "without completing handshake" not in caplog.text


@pytest.mark.long
async def test_a_service_that_was_stopped_acts_no_more(pair: Pair, repository: Path) -> None:
    id = await create(pair, repository)
    await in_a_turn(pair, id)
    async with pair.client() as client:
        listening = asyncio.Event()

        async def follow() -> None:
            async with client.stream("GET", f"/v1/replica/{id}/events") as response:
                async for _ in response.aiter_lines():
                    listening.set()

        follower = asyncio.create_task(follow())
        await listening.wait()
        pair.signal(signal.SIGSTOP)
        pair.unseen()
        # As long as its session is there, it could still write.
        assert not await pair.leases.take_over(id, "")
        pair.server.cut(pair.name)
        pair.front.ports = [pair.second.port]
        await pair.front.cut()
        pair.unseen()
        await pair.taken_over(id)
        await went_on(pair, id)
        pair.signal(signal.SIGCONT)
        # Its stream ends, so that whoever reads it comes back, and gets the other's.
        async with asyncio.timeout(WAIT_SECONDS):
            await follower
        answer = await client.get(f"/v1/replica/{id}")
        assert answer.status_code == 200, answer.text
    # It does not start a container that has ended; the service that has it does.
    count = len(pair.containers.launches)
    os.kill(json.loads((pair.containers.root / f"{id}.json").read_text())[0], signal.SIGKILL)
    assert await pair.second.running(id, "echo back") == "back\n"
    assert len(pair.containers.launches) == count + 1
    assert "Another service has taken over" in (pair.home.root.parent / "log").read_text()


async def test_a_sleeping_replica_of_a_killed_service_is_woken(
    pair: Pair, repository: Path
) -> None:
    """With what was not committed and the chat's session; the old owner then leaves it alone."""
    id = await create(pair, repository)
    second = pair.second
    await second.post(f"/v1/replica/{id}/messages", block("echo one >> ran", "echo new > new"))
    await ended(second, id, 1)
    await rest(second, id)
    assert not pair.second.home.saves.joinpath(f"{id}.git").exists()
    await pair.kill()
    pair.rows(JUST_NOW, pair.home.id.read_text().strip())
    away = await second.client.post(f"/v1/replica/{id}/wake")
    assert away.status_code == 502, away.text  # not at once: it may only be restarting
    pair.unseen()
    # Reading changes nothing; a message does, and is worked on once.
    assert (await second.get(f"/v1/replica/{id}"))["replica"]["unreachable_since"]
    assert (await second.client.get(f"/v1/replica/{id}/canvas")).status_code == 502
    assert not await pair.leases.holds(id)
    await second.post(f"/v1/replica/{id}/messages", block("echo two >> ran"))
    assert await pair.leases.holds(id)
    await ended(second, id, 2)
    status = "cd shop && git status --short && cat ran new"
    assert (await second.run(id, status)).split() == ["??", "new", "??", "ran", "one", "two", "new"]
    said = await history(second, id, "user-message")
    assert [one["text"].split()[2] for one in said] == ["one", "two"]
    assert await history(second, id, "git-operation") == []  # nothing was restored
    await until_saved(second, id, "ran", "one\ntwo\n")
    indices = pair.indices(id)
    assert indices == list(range(1, len(indices) + 1))
    # The other one is back. It passes on what it is asked, and starts nothing.
    count = len(pair.containers.launches)
    await pair.start()
    async with pair.client() as client:
        answer = await client.post(f"/v1/replica/{id}/messages", json=block("echo three >> ran"))
        assert answer.status_code == 200, answer.text
        await ended(second, id, 3)
        assert (await client.post(f"/v1/replica/{id}/sleep")).status_code == 200
        assert (await client.post(f"/v1/replica/{id}/wake")).status_code == 202
    await second.reach(id, "active")
    assert await second.run(id, "cat shop/ran") == "one\ntwo\nthree\n"
    assert len(pair.containers.launches) == count + 1
    await second.client.delete(f"/v1/replica/{id}")
    assert not pair.containers.place(id).exists()


@pytest.mark.long
async def test_what_is_only_in_the_directory_of_a_service_stays_with_it(
    pair: Pair, repository: Path
) -> None:
    """An archive, and a save whose volume is lost; it has both when it is back."""
    archived, lost = await create(pair, repository), await create(pair, name="r2")
    second = pair.second
    for id in (archived, lost):
        await second.run(
            id, "mkdir -p ~/.quarterdeck/canvas; echo kept > ~/.quarterdeck/canvas/kept"
        )
        await second.post(f"/v1/replica/{id}/messages", block("true"))
        await ended(second, id, 1)
    show = ["git", "--git-dir", str(pair.home.saves / f"{lost}.git"), "cat-file", "-e"]
    kept = f"{FILES_REF}:home/.quarterdeck/canvas/kept"
    await eventually(lambda: subprocess.run([*show, kept]).returncode == 0, "the save")
    await second.post(f"/v1/replica/{archived}/archive")
    await rest(second, lost)
    await pair.kill()
    volume = pair.containers.place(lost)
    shutil.rmtree(volume)
    pair.unseen()
    for id, place in ((archived, f"archives/{archived}.tar.gz"), (lost, f"saves/{lost}.git")):
        answer = await second.client.post(f"/v1/replica/{id}/wake")
        assert answer.status_code == 502, answer.text
        assert f"{place} in the directory of that service" in answer.text
        assert not await pair.leases.holds(id)
    assert not volume.exists()  # no empty one was made
    await pair.start()
    pair.front.ports = [pair.second.port, pair.port]
    for id in (archived, lost):
        await wake(second, id)
        assert await second.run(id, "cat ~/.quarterdeck/canvas/kept") == "kept\n"


@pytest.mark.long
async def test_a_replica_whose_container_ended_with_its_service_goes_on(
    pair: Pair, repository: Path
) -> None:
    """Nobody asks for it: its turn was interrupted, and its queue runs once."""
    id = await create(pair, repository)
    await in_a_turn(pair, id)
    pair.front.ports = []  # it stays where it is, without a connection
    await pair.kill()
    pid = json.loads((pair.containers.root / f"{id}.json").read_text())[0]
    pair.unseen()
    # While its container is meant to run, it is left to connect.
    assert "when it connects" in str(await pair.leases.take_stopped(id))
    os.kill(pid, signal.SIGKILL)
    pair.front.ports = [pair.second.port]
    await pair.swept(id)
    results = await ended(pair.second, id, 3)
    assert [one["stopReason"] for one in results[1:]] == ["end_turn"] * 2
    assert pair.file(id, "ran").read_text().split() == ["begun", "second", "third"]
    assert await pair.leases.holds(id)


@pytest.mark.long
async def test_a_volume_that_is_lost_after_a_takeover_is_not_replaced_by_an_empty_one(
    pair: Pair, repository: Path
) -> None:
    id = await create(pair, repository)
    await rest(pair.second, id)
    await pair.kill()
    pair.unseen()
    assert await pair.leases.take_stopped(id) is None
    volume = pair.containers.place(id)
    kept = volume.with_name("kept")
    volume.rename(kept)
    await pair.second.post(f"/v1/replica/{id}/wake", status=202)
    error = (await pair.second.reach(id, "error"))["error"]
    assert f"saves/{id}.git in the directory of the service" in error
    assert not volume.exists()
    kept.rename(volume)
    await wake(pair.second, id)


@pytest.mark.long
async def test_what_a_service_had_no_time_to_remove_is_removed(
    pair: Pair, repository: Path
) -> None:
    id = await create(pair, repository)
    await rest(pair.second, id)
    await pair.kill()
    pair.unseen()
    await pair.second.post(f"/v1/replica/{id}/forget")
    volume = pair.containers.place(id)
    assert volume.is_dir()
    await pair.leases.sweep()
    assert not volume.exists()
    # What is in its directory it removes itself.
    own = places_of(pair.home, id).root
    assert own.is_dir()
    await pair.start()
    await eventually(lambda: not own.exists(), "the removal")


@pytest.mark.long
async def test_services_have_one_warm_pool(pair: Pair, repository: Path) -> None:
    """A replica is made by the one that has prepared it; the other one takes over what is left."""
    second = pair.second
    environment = await second.environment(str(repository))
    warm = (
        "SELECT id, home_id FROM workspaces WHERE warm_state = 'ready' AND status = 'preparing'"
        " ORDER BY created_at"
    )
    first, own = (home.id.read_text().strip() for home in (pair.home, second.home))
    path = f"/v1/environments/{environment}/warm-pools"
    async with pair.client() as client:
        switched = await client.put(path, json={"enabled": True})
        assert switched.status_code == 200, switched.text
    await eventually(lambda: len(pair.rows(warm)) == 2, "the pool")
    assert {home for _, home in pair.rows(warm)} == {first}
    prepared = {id for id, _ in pair.rows(warm)}
    # The other one adds nothing, and lets this one make a replica.
    second.service.fleet.pools.nudge()
    made = await second.create(environment)
    assert made in prepared
    assert not await pair.leases.holds(made)
    large = await second.create(environment, size="large")  # one that no pool has
    assert await pair.leases.holds(large)
    await eventually(lambda: len(pair.rows(warm)) == 2, "the pool")
    shown = (await second.get(f"/v1/environments/{environment}/warm-hooks"))["warm_pool"]
    assert (shown["ready_count"], shown["warming_count"]) == (2, 0)
    assert len((await second.get(f"/v1/warm-pools/{shown['id']}/workspaces"))["workspaces"]) == 2
    gone = [id for id, home in pair.rows(warm) if home == first]
    await pair.kill()
    made = await second.create(environment)  # a service that does not answer holds up nothing
    assert await pair.leases.holds(made)
    for id in gone:
        os.kill(json.loads((pair.containers.root / f"{id}.json").read_text())[0], signal.SIGKILL)
    pair.unseen()
    second.service.fleet.pools.nudge()
    for id in gone:
        await pair.swept(id)
    mine = f"{warm.partition(' ORDER')[0]} AND home_id = '{own}'"
    await eventually(lambda: len(pair.rows(mine)) == 2, "one pool of two")

    def volumes() -> bool:
        left = {id for (id,) in pair.rows("SELECT id FROM workspaces")}
        return {one.name for one in pair.containers.root.iterdir() if one.is_dir()} == left

    await eventually(volumes, "the removals")


@pytest.mark.long
async def test_a_service_cannot_act_on_a_sleeping_replica_that_it_lost(
    pair: Pair, repository: Path
) -> None:
    second = pair.second
    id = await second.create(await second.environment(str(repository)))
    manager = second.service.fleet.of(id)
    await rest(second, id)
    other = pair.home.id.read_text().strip()
    pair.rows("UPDATE workspaces SET home_id = %s, lease = 1 WHERE id = %s", other, id)
    before = pair.indices(id)
    for act in (manager.wake, manager.archive, manager.delete):
        with pytest.raises((ApiError, UnknownWorkspaceError)):
            await act()
    assert not await manager._put_away()  # pyright: ignore[reportPrivateUsage]
    await pair.leases.let_go()
    assert pair.indices(id) == before
    assert pair.containers.place(id).is_dir()
    assert not pair.second.home.archives.joinpath(f"{id}.tar.gz").exists()
    assert id not in second.service.fleet.managed


@pytest.mark.long
async def test_a_replica_is_not_taken_over_while_its_volume_is_packed(
    pair: Pair, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its service may be suspended there, and removes the volume once it continues."""
    second = pair.second
    id = await second.create(await second.environment(str(repository)))
    await rest(second, id)
    packing, go = asyncio.Event(), asyncio.Event()
    destroy = pair.containers.destroy

    async def hold(workspace_id: str) -> None:
        packing.set()
        await go.wait()
        await destroy(workspace_id)

    monkeypatch.setattr(pair.containers, "destroy", hold)
    archiving = asyncio.create_task(second.post(f"/v1/replica/{id}/archive"))
    async with asyncio.timeout(WAIT_SECONDS):
        await packing.wait()
    # Seen from another service whose database this is.
    other = str(uuid4())
    own = second.home.id.read_text().strip()
    pair.rows("UPDATE workspaces SET home_id = %s WHERE id = %s", other, id)
    why = await pair.leases.take_stopped(id)
    pair.rows("UPDATE workspaces SET home_id = %s WHERE id = %s", own, id)
    go.set()
    await archiving
    assert why is not None and f"archives/{id}.tar.gz" in why
    await wake(second, id)


@pytest.mark.long
async def test_a_service_stops_acting_when_it_reads_of_its_loss(
    pair: Pair, repository: Path
) -> None:
    """Its writes are undone, the container runs on, and it lets go of it."""
    second = pair.second
    id = await second.create(await second.environment(str(repository)))
    manager = second.service.fleet.of(id)
    stream = await second.service.context.event_log.subscribe(id, None)
    other = pair.home.id.read_text().strip()
    pair.rows("UPDATE workspaces SET home_id = %s, lease = 1 WHERE id = %s", other, id)
    pair.front.ports = [second.port]
    await pair.front.cut()  # no connection is let in any more
    event = NewEvent(EventType.ERROR, {"message": "late"})
    before = pair.indices(id)
    with pytest.raises(UnknownWorkspaceError):
        await second.service.context.event_log.append(id, [event])
    for act in (manager.sleep, manager.archive, manager.delete):
        with pytest.raises((ApiError, UnknownWorkspaceError)):
            await act()
    await pair.leases.let_go()
    assert pair.indices(id) == before
    assert (await pair.containers.find(id)).state == "running"
    assert not second.driver.switchboard.has(id)
    assert id not in second.service.fleet.managed
    assert [chunk async for chunk in stream] == []
