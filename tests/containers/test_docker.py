"""Replicas in containers of a real Docker Engine."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.image import build_context
from tests.containers.deck import Deck
from tests.containers.dockerd import BASE, IMAGE, DockerEngine, docker_engine
from tests.support.git import git, make_repository


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerEngine]:
    with docker_engine() as made:
        asyncio.run(_build(made))
        yield made


async def _build(engine: DockerEngine) -> None:
    containers = DockerContainers(Home(engine.directory), IMAGE, engine.address)
    await containers.open()
    context = build_context(engine.parts / "wheels")
    lines = [line async for line in containers.build(IMAGE, context, BASE)]
    assert "Successfully tagged" in lines[-1]
    await containers.close()


@pytest.fixture
async def deck(engine: DockerEngine) -> AsyncIterator[Deck]:
    with TemporaryDirectory(prefix="qd-") as directory:
        home = Home(Path(directory) / "home")
        containers = DockerContainers(home, IMAGE, engine.address)
        await containers.open()
        made = Deck(home, containers, engine.host)
        await made.start()
        try:
            yield made
            for replica in (await made.get("/v1/replica?limit=100"))["replicas"]:
                await made.client.delete(f"/v1/replica/{replica['id']}")
            assert left(engine) == []
        finally:
            await made.stop()
            await containers.close()


def left(engine: DockerEngine) -> list[str]:
    """The containers and volumes there are."""
    with engine.client() as client:
        containers = client.get("/containers/json?all=true").json()
        volumes = client.get("/volumes").json()["Volumes"] or []
    return [*(one["Names"][0] for one in containers), *(one["Name"] for one in volumes)]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def test_the_life_of_a_replica(deck: Deck, engine: DockerEngine, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    assert (await deck.run(id, "id -u; id -g; pwd")).split() == ["1000", "0", "/replica/workspace"]
    assert "in a terminal" in await deck.in_terminal(id, "echo in a terminal")
    replica = (await deck.get(f"/v1/replica/{id}?include=environment"))["replica"]
    assert replica["environment"]["isolation"] == "container"
    # It works with its repository, and reaches its source through the service.
    await deck.run(id, "cd shop && echo mine >> README && git commit -qam mine && echo new > new")
    git(repository, "commit", "-q", "--allow-empty", "-m", "later")
    newest = git(repository, "rev-parse", "HEAD").strip()
    await deck.run(id, "cd shop && git fetch -q origin")
    assert (await deck.run(id, "cd shop && git rev-parse origin/main")).strip() == newest
    # The canvas is read while it sleeps, and its changes are.
    await deck.run(
        id, "mkdir -p ~/.quarterdeck/canvas && echo a plan > ~/.quarterdeck/canvas/plan.md"
    )
    assert (await deck.client.post(f"/v1/replica/{id}/sleep")).status_code == 200
    assert left(engine) == [f"qd-{id}"]  # the volume
    # ... and wakes with all its files, after it was packed too.
    for packing in (False, True):
        if packing:
            assert (await deck.client.post(f"/v1/replica/{id}/archive")).status_code == 200
            assert left(engine) == []
        listed = await deck.get(f"/v1/replica/{id}/canvas")
        assert [one["filename"] for one in listed["items"]] == ["plan.md"]
        one = await deck.get(f"/v1/replica/{id}/canvas/plan.md")
        assert one["content"] == "a plan\n"
        await deck.client.post(f"/v1/replica/{id}/wake")
        await deck.reach(id, "active")
        assert await deck.run(id, "cat shop/new; tail -1 shop/README") == "new\nmine\n"
        if not packing:
            await deck.client.post(f"/v1/replica/{id}/sleep")
    # A container that is killed is started again.
    with engine.client() as client:
        client.post(f"/containers/qd-{id}/kill").raise_for_status()
    assert await deck.running(id, "cat shop/new") == "new\n"


async def test_limits_hold_and_replicas_are_apart(deck: Deck, engine: DockerEngine) -> None:
    environment = await deck.environment()
    one, other = await asyncio.gather(deck.create(environment), deck.create(environment))
    with engine.client() as client:
        host = client.get(f"/containers/qd-{one}/json").json()
    limits = host["HostConfig"]
    assert (limits["Memory"], limits["MemorySwap"], limits["PidsLimit"]) == (8 << 30, 8 << 30, 4096)
    assert limits["NanoCpus"] > 0 and limits["CapDrop"] == ["ALL"]
    # What the kernel enforces is what was asked for.
    paths = "/sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max"
    assert (await deck.run(one, f"cat {paths} 2>/dev/null || true")).split() == ["4096"]
    paths = "/sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max"
    assert (await deck.run(one, f"cat {paths} 2>/dev/null || true")).split() == [str(8 << 30)]
    assert "NoNewPrivs:\t1" in await deck.run(one, "cat /proc/self/status")
    # No replica reaches another.
    address = host["NetworkSettings"]["Networks"]["quarterdeck"]["IPAddress"]
    serve = "setsid python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 & "
    connect = (
        f"import socket, time\ns = socket.socket()\ns.settimeout(1)\n"
        f"print(s.connect_ex(('{address}', 8000)) == 0)"
    )
    await deck.run(one, serve)
    assert "True" in await deck.run(
        one, f'for i in $(seq 50); do python3 -c "{connect}" | grep True && break; sleep 0.1; done'
    )
    assert (await deck.run(other, f'python3 -c "{connect}"')).strip() == "False"


async def test_it_outlives_the_service_and_the_engine(deck: Deck, engine: DockerEngine) -> None:
    id = await deck.create(await deck.environment())
    before = await deck.run(id, "echo $PPID; date +%s%N > started; cat started")
    await deck.stop()
    await deck.start()
    assert await deck.running(id, "echo $PPID; cat started") == before
    engine.kill()
    try:
        assert await deck.run(id, "cat started") in before
    finally:
        engine.start()
    assert await deck.run(id, "echo $PPID; cat started") == before


async def test_a_new_user_with_docker(engine: DockerEngine) -> None:
    """Configure, build, start, check, work: with the program itself, on the engine's own network."""
    with TemporaryDirectory(prefix="qd-") as home:
        config = f'[sandboxes]\ndriver = "docker"\naddress = "{engine.address}"\n'
        (Path(home) / "config.toml").write_text(config)
        variables = {**os.environ, "QUARTERDECK_HOME": home}

        async def qd(*words: str) -> str:
            process = await asyncio.create_subprocess_exec(
                *("nsenter", f"--net=/run/netns/{engine.namespace}"),
                *(sys.executable, "-I", "-m", "quarterdeck", *words),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=variables,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0, output.decode()
            return output.decode()

        wheels = str(engine.parts / "wheels")
        assert "Built qd-replica:" in await qd("image", "build", "--base", BASE, "--wheels", wheels)
        service = await asyncio.create_subprocess_exec(
            *("nsenter", f"--net=/run/netns/{engine.namespace}"),
            *(sys.executable, "-I", "-m", "quarterdeck", "serve", "--json"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=variables,
        )
        try:
            assert service.stdout is not None
            assert b'"ready": true' in await service.stdout.readline()
            checked = json.loads(await qd("doctor", "--json"))
            found = {one["name"]: one["level"] for one in checked["checks"]}
            assert (found["docker"], found["image"], found["trial replica"]) == ("ok", "ok", "ok")
            agents = await qd("agents", "--json")
            assert '"builtin"' in agents
            made = await qd("replica", "create", "--env", "global", "--name", "first", "--wait")
            assert "first" in made
            assert "1000" in await qd("replica", "exec", "first", "--", "id", "-u")
            # Inside, qd reaches the service by the same address.
            opened = await qd("replica", "exec", "first", "--", "qd", "preview", "open", "3000")
            assert opened.startswith("http://127.0.0.1:")
            await qd("replica", "rm", "first", "--yes")
            assert left(engine) == []
        finally:
            service.terminate()
            await service.communicate()
