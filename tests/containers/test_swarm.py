"""Replicas on a real Swarm of two nodes."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.cgroups import BOUNDS
from quarterdeck.sandboxes.swarm import SwarmContainers
from tests.containers.daemons import IMAGE
from tests.containers.deck import Deck
from tests.containers.installed import Installation
from tests.containers.losses import forked_from_its_save, lost_in_a_turn, rest, wake
from tests.containers.swarms import Swarm
from tests.support.git import git, make_repository
from tests.support.waiting import eventually

pytestmark = pytest.mark.long

LIMITS = """cd /sys/fs/cgroup
cat pids/pids.max 2>/dev/null || cat pids.max
cat memory/memory.limit_in_bytes 2>/dev/null || cat memory.max
cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us 2>/dev/null || cat cpu.max
"""
ON_WORKER = ["node.role==worker"]


@pytest.fixture
async def deck(swarm: Swarm) -> AsyncIterator[Deck]:
    with TemporaryDirectory(prefix="qd-") as directory:
        for node in (swarm.manager, swarm.worker):  # the test before may have failed
            await eventually(partial(swarm.is_ready, node), "the node")
        home = Home(Path(directory) / "home")
        containers = SwarmContainers(home, IMAGE, swarm.manager.address)
        await containers.open()
        made = Deck(home, containers, swarm.host)
        await made.start()
        watching = asyncio.create_task(containers.watch(made.driver.switchboard.end))
        try:
            yield made
            for replica in (await made.get("/v1/replica?limit=100"))["replicas"]:
                await made.client.delete(f"/v1/replica/{replica['id']}")
            assert swarm.get("/services") == []
        finally:
            watching.cancel()
            await made.stop()
            await containers.close()


def containers_of(deck: Deck) -> SwarmContainers:
    assert isinstance(deck.containers, SwarmContainers)
    return deck.containers


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def test_the_life_of_a_replica(deck: Deck, swarm: Swarm, repository: Path) -> None:
    containers_of(deck).constraints = ON_WORKER
    id = await deck.create(await deck.environment(str(repository)))
    assert swarm.running(id) == [swarm.worker.namespace]
    assert (await deck.run(id, "id -u; id -g; pwd")).split() == ["1000", "0", "/replica/workspace"]
    assert "in a terminal" in await deck.in_terminal(id, "echo in a terminal")
    replica = (await deck.get(f"/v1/replica/{id}?include=environment"))["replica"]
    assert replica["environment"]["isolation"] == "container"
    status = await deck.run(id, "cat /proc/self/status")
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert set(re.findall(r"Cap\w+:\t(\w+)", status)) == {"0" * 16}
    bounds = BOUNDS["small"]
    found = (await deck.run(id, LIMITS)).split()
    assert found[:2] == [str(bounds.processes), str(bounds.memory)]
    assert int(found[2]) / int(found[3]) == min(bounds.processors, os.cpu_count() or 1)
    # It wakes with all its files, where they are, although another node would do now.
    await deck.run(id, "cd shop && echo ignored > .gitignore && echo kept > ignored")
    await deck.run(
        id, "mkdir -p ~/.quarterdeck/canvas && echo a plan > ~/.quarterdeck/canvas/plan.md"
    )
    await rest(deck, id)
    assert swarm.running(id) == []
    one = await deck.get(f"/v1/replica/{id}/canvas/plan.md")
    assert one["content"] == "a plan\n"
    containers_of(deck).constraints = []
    await wake(deck, id)
    assert swarm.running(id) == [swarm.worker.namespace]
    assert await deck.run(id, "cat shop/ignored") == "kept\n"
    # ... from its save after it was archived.
    await rest(deck, id)
    await deck.post(f"/v1/replica/{id}/archive")
    assert swarm.get("/services") == []
    await wake(deck, id)
    assert await deck.run(id, "cat shop/.gitignore") == "ignored\n"
    # A container that ends is started again, with its files.
    await deck.run(id, "echo kept > shop/ignored")
    (name,) = swarm.running(id)
    node = next(one for one in (swarm.manager, swarm.worker) if one.namespace == name)
    with node.client() as client:
        (container,) = client.get("/containers/json").json()
        client.post(f"/containers/{container['Id']}/kill").raise_for_status()
    assert await deck.running(id, "cat shop/ignored") == "kept\n"


async def test_a_replica_is_forked_from_its_save(
    deck: Deck, swarm: Swarm, repository: Path
) -> None:
    containers_of(deck).constraints = ON_WORKER
    await forked_from_its_save(deck, await deck.environment(str(repository)), asleep=False)


async def test_a_node_that_loses_power_in_a_turn(
    deck: Deck, swarm: Swarm, repository: Path
) -> None:
    """The replica goes on on the other one, and later not with the old files of the first."""
    worker = swarm.worker
    containers_of(deck).constraints = ON_WORKER
    ids: list[str] = []

    async def lose(id: str) -> None:
        ids.append(id)
        assert swarm.running(id) == [worker.namespace]
        await deck.run(id, "touch shop/stale")  # after the last save
        containers_of(deck).constraints = []
        worker.cut_power()
        began = time.monotonic()
        await deck.running(id, "echo up")
        print(f"it answers after {time.monotonic() - began:.1f} s")
        assert swarm.running(id) == [swarm.manager.namespace]

    try:
        await lost_in_a_turn(deck, await deck.environment(str(repository)), lose)
    finally:
        worker.start()
        worker.plug()
    (id,) = ids
    await eventually(lambda: swarm.is_ready(worker), "the node")
    await deck.run(id, "cd shop && echo newest > newest")
    await rest(deck, id)
    swarm.set_availability(swarm.manager, "drain")
    try:
        await wake(deck, id)
        assert swarm.running(id) == [worker.namespace]
        seen = (await deck.run(id, "cat shop/newest shop/ran; ls shop")).split()
        assert seen == ["newest", "first", "third", "fourth", "README", "newest", "ran"]
    finally:
        swarm.set_availability(swarm.manager, "active")


async def test_a_node_that_is_cut_off_is_not_let_in_again(
    deck: Deck, swarm: Swarm, repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker = swarm.worker
    containers_of(deck).constraints = ON_WORKER

    async def lose(id: str) -> None:
        containers_of(deck).constraints = []
        worker.unplug()
        await deck.running(id, "echo up")
        assert swarm.running(id) == [swarm.manager.namespace]

    def running_on_worker() -> int:
        with worker.client() as client:
            return len(client.get("/containers/json").json())

    caplog.set_level("INFO")
    refused = "is refused: another one is meant to run"
    try:
        await lost_in_a_turn(deck, await deck.environment(str(repository)), lose)
        assert running_on_worker() == 1
        with worker.halted():  # or it may end the container before its call
            worker.plug()
            await eventually(lambda: refused in caplog.text, "the old container's call")
    finally:
        worker.plug()
    await eventually(lambda: running_on_worker() == 0, "the end of the old container")
    await eventually(lambda: swarm.is_ready(worker), "the node")


async def test_the_program_on_a_swarm(swarm: Swarm, repository: Path) -> None:
    """The doctor, git through the engine, and what is refused."""
    address = f"{swarm.manager.inside}:8443"
    more = f'swarm = true\nhome_url = "https://{address}"\nhome_listen = "{address}"\n'
    with TemporaryDirectory(prefix="qd-") as home:
        installed = Installation(swarm.manager, Path(home), more)
        async with installed.serving():
            code, said = await installed.said("doctor")
            assert code == 0 and "a Swarm with 2 of 2 nodes ready" in said, said
            assert "created, used and deleted" in said, said
            (repository / "README").write_text("Changed.\n")
            create = ("replica", "create", "--name", "shop", "--with-uncommitted", "--wait")
            await installed.qd(*create, cwd=repository)
            assert "+Changed." in await installed.qd("replica", "diff", "shop")
            git(repository, "stash", "--quiet")
            git(repository, "commit", "-q", "--allow-empty", "-m", "from the source")
            await installed.qd("replica", "commit", "shop", "-m", "from the replica")
            await installed.qd("replica", "update", "shop")
            await installed.qd("replica", "push", "shop")
            pushed = git(repository, "log", "--all", "--format=%s")
            assert {"from the source", "from the replica"} <= set(pushed.splitlines())
            await installed.qd("replica", "sleep", "shop")
            code, said = await installed.said("replica", "diff", "shop")
            assert code != 0 and "while it sleeps" in said
            await installed.qd("replica", "rm", "shop", "--yes")
