"""Replicas in containers of a real Docker Engine, and of podman."""

import asyncio
import io
import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from quarterdeck.engine.daemon import OPEN_FILES
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.cgroups import BOUNDS
from quarterdeck.sandboxes.containers import HomeAddress
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import ProcessError, SandboxError
from quarterdeck.sandboxes.image import VERSION_LABEL
from quarterdeck.service.certificate import certificate_for
from quarterdeck.service.db.tables import services
from tests.containers.daemons import BASE, IMAGE, Daemon, DockerEngine, Podman, configure, left
from tests.containers.deck import SLOW_SECONDS, Deck
from tests.containers.front import Front
from tests.containers.installed import Installation
from tests.containers.losses import (
    block,
    ended,
    history,
    lost_in_a_turn,
    lost_in_sleep,
    rest,
    until_saved,
    wake,
)
from tests.support.git import git, make_repository
from tests.support.postgresql import Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.long

PROGRAM = (sys.executable, "-I", "-m", "quarterdeck")


@pytest.fixture
async def deck(engine: Daemon) -> AsyncIterator[Deck]:
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


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def test_the_life_of_a_replica(deck: Deck, engine: Daemon, repository: Path) -> None:
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
            archive = deck.home.archives / f"{id}.tar.gz"
            whole = archive.read_bytes()
            archive.write_bytes(whole[: len(whole) // 2])
            await deck.client.post(f"/v1/replica/{id}/wake")
            assert "damaged" in (await deck.reach(id, "error"))["error"]
            assert left(engine) == []
            archive.write_bytes(whole)
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


async def test_work_is_saved_from_a_lost_volume(
    deck: Deck, engine: Daemon, repository: Path
) -> None:
    async def lose(id: str) -> None:
        with engine.client() as client:
            client.delete(f"/containers/qd-{id}?force=true")
            client.delete(f"/volumes/qd-{id}").raise_for_status()

    environment = await deck.environment(str(repository))
    await lost_in_sleep(deck, environment, lose)
    await lost_in_a_turn(deck, environment, lose)


LIMITS = """cd /sys/fs/cgroup
cat pids/pids.max 2>/dev/null || cat pids.max
cat memory/memory.limit_in_bytes 2>/dev/null || cat memory.max
cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us 2>/dev/null || cat cpu.max
"""


async def test_limits_hold_and_replicas_are_apart(deck: Deck, engine: Daemon) -> None:
    environment = await deck.environment()
    one, other = await asyncio.gather(
        deck.create(environment), deck.create(environment, size="large")
    )
    # What the kernel enforces.
    processors = os.cpu_count() or 1
    for id, bounds in ((one, BOUNDS["small"]), (other, BOUNDS["large"])):
        found = (await deck.run(id, LIMITS)).split()
        assert found[:2] == [str(bounds.processes), str(bounds.memory)]
        assert int(found[2]) / int(found[3]) == min(bounds.processors, processors)
    status = await deck.run(one, "cat /proc/self/status")
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert set(re.findall(r"Cap\w+:\t(\w+)", status)) == {"0" * 16}
    assert int(await deck.run(one, "ulimit -Hn")) <= OPEN_FILES
    # No replica reaches another, by itself or by the rule in the documentation.
    with engine.client() as client:
        host = client.get(f"/containers/qd-{one}/json").json()
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
    assert isinstance(deck.containers, DockerContainers)
    gaps = (await deck.containers.isolation()).gaps
    assert [gap.message for gap in gaps] == engine.gaps
    if isinstance(engine, Podman):
        assert (await deck.run(other, f'python3 -c "{connect}"')).strip() == "True"
        engine.keep_apart()
    assert (await deck.run(other, f'python3 -c "{connect}"')).strip() == "False"


async def test_a_size_of_volumes_that_cannot_be_limited_is_refused(
    engine: Daemon, home: Path
) -> None:
    """Its data is on a file system without quotas, which it says."""
    containers = DockerContainers(Home(home), IMAGE, engine.address)
    containers.storage = 1 << 30
    try:
        with pytest.raises(SandboxError, match=r"sandboxes\.storage: .*project quotas") as refused:
            await containers.open()
        assert re.search("quota", refused.value.details or "", re.IGNORECASE)
    finally:
        await containers.close()
    assert left(engine) == []


async def test_it_outlives_the_service_and_the_engine(deck: Deck, engine: Daemon) -> None:
    id = await deck.create(await deck.environment())
    before = await deck.run(id, "echo $PPID; date +%s%N > started; cat started")
    await deck.stop()
    await deck.start()
    assert await deck.running(id, "echo $PPID; cat started") == before
    engine.kill()
    try:
        assert await deck.run(id, "cat started") in before
        # The line breaks as well: nobody takes the replica for lost.
        deck.driver.switchboard.end(id)

        async def refused() -> bool:
            body = {"command": "true", "timeout_seconds": 5}
            answer = await deck.client.post(f"/v1/replica/{id}/exec", json=body)
            return answer.status_code in (502, 503)

        await eventually(refused, "the cut")
    finally:
        engine.start()
    assert (await deck.running(id, "echo $PPID; cat started")) == before
    assert await deck.run(id, "echo $PPID; cat started") == before


@pytest.mark.parametrize("cut", ["engine", "service", "line"])
async def test_a_turn_goes_on_while_something_is_gone(
    deck: Deck, engine: Daemon, repository: Path, cut: str
) -> None:
    """With an open terminal, a queue and uncommitted work; nothing runs twice."""
    id = await deck.create(await deck.environment(str(repository)))
    base = f"/v1/workspaces/{id}/terminal/sessions"
    session = (await deck.post(base, {"cols": 80, "rows": 24}, 201))["session"]["id"]

    async def typed(text: str, number: int) -> None:
        keys = {"data": f"{text}\n", "generation": 0, "sequence": number}
        await deck.post(f"{base}/{session}/input", keys)

    wait = "while ! [ -e go ]; do sleep 0.05; done"
    work = ("echo edited >> README", "echo begun >> ran", "touch running", wait, "echo done >> ran")
    await deck.post(f"/v1/replica/{id}/messages", block(*work))
    for text in ("second", "third"):
        await deck.post(f"/v1/replica/{id}/messages", block(f"echo {text} >> ran"))
    inside = await deck.run(id, "while ! [ -e shop/running ]; do sleep 0.05; done; echo $PPID")
    await typed("cd shop; KEPT=kept; (sleep 3; touch go) &", 0)
    if cut == "engine":
        engine.kill()
        assert "begun" in await deck.run(id, "cat shop/ran")
        engine.start()
    elif cut == "service":
        await deck.stop()
        await deck.start()
    else:
        engine.unplug()

        async def refused() -> bool:
            return (await deck.client.get(base)).status_code in (502, 503)

        try:
            await eventually(refused, "the cut", 2 * SLOW_SECONDS)
        finally:
            engine.plug()
    assert await deck.running(id, "echo $PPID") == inside
    results = await ended(deck, id, 3)
    assert [one["stopReason"] for one in results] == ["end_turn"] * 3
    assert (await deck.run(id, "cat shop/ran")).split() == ["begun", "done", "second", "third"]
    assert "+edited" in await deck.run(id, "git -C shop diff")
    assert len(await history(deck, id, "user-message")) == 3
    await typed("echo $KEPT > kept", 1)
    await deck.run(id, 'while ! [ -s shop/kept ]; do sleep 0.05; done; grep "^kept$" shop/kept')


async def _work_on_changes(qd: Callable[..., Awaitable[str]], checkout: Path) -> None:
    """Take uncommitted changes along, get the source's news, push, fork."""
    (checkout / "README").write_text("Changed.\n")
    (checkout / "extra").write_text("not committed\n")
    create = ("replica", "create", "--name", "shop", "--with-uncommitted", "--wait")
    await qd(*create, cwd=checkout)

    async def inside(name: str, command: str) -> str:
        return await qd("replica", "exec", name, "--", "sh", "-c", command)

    status = await inside("shop", "git status --short && cat README")
    assert status == " M README\n?? extra\nChanged.\n"
    assert "+Changed." in await qd("replica", "diff", "shop")
    git(checkout, "stash", "--include-untracked", "--quiet")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "from the source")
    await qd("replica", "commit", "shop", "-m", "from the replica")
    await qd("replica", "update", "shop")
    subjects = await inside("shop", "git log --format=%s")
    assert {"from the source", "from the replica"} <= set(subjects.splitlines())
    await qd("replica", "push", "shop")
    pushed = git(checkout, "log", "--all", "--format=%s")
    assert "from the replica" in pushed
    await inside("shop", "echo unfinished > draft")
    await qd("replica", "fork", "shop")
    waiting = ("replica", "exec", "shop-fork", "--", "sh", "-c", "cat draft")
    async with asyncio.timeout(60):
        while True:
            try:
                assert await qd(*waiting) == "unfinished\n"
                return
            except AssertionError as e:
                assert "not active" in str(e) or "prepared" in str(e), e


async def test_only_commands_of_an_earlier_service_are_ended(
    engine: Daemon, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    async with AsyncExitStack() as stack:
        earlier, later = (DockerContainers(home, IMAGE, engine.address) for _ in range(2))
        for containers in (earlier, later):
            await containers.open()
            stack.push_async_callback(containers.close)
        running = asyncio.create_task(earlier.in_image(("cat",), b"x" * 10))
        assert await running == b"x" * 10
        running = asyncio.create_task(earlier.in_image(("sleep", "1000")))
        await eventually(lambda: left(engine), "the command")
        await earlier.tidy()
        assert left(engine) != []
        await later.tidy()
        with pytest.raises((ProcessError, SandboxError)):
            await running
        assert left(engine) == []


async def test_containers_of_another_installation_are_stopped_but_not_tidied(
    engine: Daemon, tmp_path: Path
) -> None:
    """One whose replicas were taken over; it may have the same path, on its own machine."""
    homes = [Home(tmp_path / name) for name in ("one", "other")]
    for home in homes:
        home.service.mkdir(parents=True)
        home.id.write_text(str(uuid4()))
    id = str(uuid4())
    async with AsyncExitStack() as stack:
        one, other = (DockerContainers(home, IMAGE, engine.address) for home in homes)
        for containers in (one, other):
            await containers.open()
            stack.push_async_callback(containers.close)

        async def sleeping() -> None:
            async with aclosing(one.run(id, ("sleep", "1000"))) as parts:
                async for _ in parts:
                    pass

        running = asyncio.create_task(sleeping())
        await eventually(lambda: len(left(engine)) == 2, "the command and the volume")
        await other.tidy()
        assert len(left(engine)) == 2
        await other.stop(id)
        with pytest.raises((ProcessError, SandboxError)):
            await running
        await other.destroy(id)
        assert left(engine) == []


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(prefix="qd-") as directory:
        yield Path(directory)


async def test_the_service_starts_before_docker(engine: Daemon, home: Path) -> None:
    """It starts, refuses clearly, and goes on by itself when the engine answers."""
    installed = Installation(engine, home)
    create = ("replica", "create", "--env", "global", "--name", "late", "--wait")
    refused = "The container engine does not answer"
    engine.kill()
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(installed.serving())
            code, said = await installed.said(*create)
            assert code != 0 and refused in said, said
        finally:
            engine.start()

        async def made() -> bool:
            code, said = await installed.said(*create)
            assert code == 0 or refused in said, said
            return code == 0

        await eventually(made, "a replica")
        assert await installed.qd("replica", "exec", "late", "--", "id", "-u") == "1000\n"
        await installed.qd("replica", "rm", "late", "--yes")
        lines = installed.log.read_text()
        assert lines.count("replicas wait until") == lines.count("answers again at") == 1


@pytest.mark.parametrize("engine", [DockerEngine], ids=["docker"], indirect=True)
async def test_containers_reach_the_service_at_a_given_address(engine: Daemon, home: Path) -> None:
    url = f"http://{engine.inside}:8080"
    installed = Installation(engine, home, f'home_url = "{url}"\n')
    async with installed.serving("--listen", f"{engine.inside}:8080"):
        await installed.qd("replica", "create", "--env", "global", "--name", "one", "--wait")
        assert (
            await installed.qd("replica", "exec", "one", "--", "printenv", "QD_URL") == f"{url}\n"
        )
        await installed.qd("replica", "rm", "one", "--yes")


async def test_an_image_that_does_not_fit_is_named(deck: Deck, engine: Daemon) -> None:
    containers = deck.containers
    assert isinstance(containers, DockerContainers)
    for name, lines in (
        ("qd-test-old", f"FROM {IMAGE}\nLABEL {VERSION_LABEL}=0.0.9\n"),
        ("qd-test-strange", f"FROM {BASE}\n"),
    ):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as context:
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(lines)
            context.addfile(entry, io.BytesIO(lines.encode()))
        with engine.client() as client:
            client.post(f"/build?t={name}", content=tar.getvalue()).raise_for_status()
    environment = await deck.environment()
    for name, reason in (
        ("qd-test-old", "The engine in qd-test-old is of version 0.0.9"),
        ("qd-test-strange", "has no label quarterdeck.version"),
        ("qd-test-none", "The image qd-test-none does not exist"),
    ):
        containers.image_name = name
        body = {"name": name, "environment_id": environment}
        id = (await deck.post("/v1/replica", body, 201))["replica"]["id"]
        assert reason in (await deck.reach(id, "error"))["error"]
        await deck.client.delete(f"/v1/replica/{id}")
    containers.image_name = IMAGE


async def test_containers_reach_the_service_with_tls(
    engine: Daemon, home: Path, repository: Path
) -> None:
    """By the service's own certificate, which they are given; with another one they say why not."""
    address = f"{engine.inside}:8443"
    more = f'home_url = "https://{address}"\nhome_listen = "{address}"\n'
    installed = Installation(engine, home, more)
    create = ("replica", "create", "--env", "global", "--wait", "--name")
    async with installed.serving():
        await installed.qd("replica", "create", "--name", "one", "--wait", cwd=repository)
        git(repository, "commit", "-q", "--allow-empty", "-m", "later")
        script = "git fetch -q origin && git log --format=%s -1 origin/main"
        assert await installed.qd("replica", "exec", "one", "--", "sh", "-c", script) == "later\n"
        await installed.qd("replica", "rm", "one", "--yes")
    certificate_for(home / "other.pem", engine.inside)
    configure(home, engine, f'home_url = "https://{address}"\nhome_ca = "other.pem"\n')
    pem = home / "service/containers.pem"
    server = ("openssl", "s_server", "-quiet", "-accept", address, "-cert", pem, "-key", pem)
    inside = ("nsenter", f"--net=/run/netns/{engine.namespace}")
    listening = await asyncio.create_subprocess_exec(
        *inside, *server, stdin=asyncio.subprocess.PIPE
    )
    try:
        async with installed.serving():
            code, said = await installed.said(*create, "two")
            await installed.qd("replica", "rm", "two", "--yes")
    finally:
        listening.kill()
        await listening.wait()
    assert code != 0 and "certificate of the service" in said and "not accepted" in said, said


async def test_a_new_user(engine: Daemon, home: Path, repository: Path) -> None:
    """Configure, start, check, work."""
    installed = Installation(engine, home)
    qd = installed.qd
    async with installed.serving():
        checked = json.loads(await qd("doctor", "--json"))
        found = {one["name"]: one["level"] for one in checked["checks"]}
        names = ("docker", "image", "container sizes", "trial replica")
        assert [found[name] for name in names] == ["ok"] * len(names)
        assert found.get("container gap") == ("warn" if engine.gaps else None)
        agents = await qd("agents", "--json")
        assert '"builtin"' in agents
        made = await qd("replica", "create", "--env", "global", "--name", "first", "--wait")
        assert "first" in made
        assert "1000" in await qd("replica", "exec", "first", "--", "id", "-u")
        # Inside, qd reaches the service by the same address.
        opened = await qd("replica", "exec", "first", "--", "qd", "preview", "open", "3000")
        assert opened.startswith("http://127.0.0.1:")
        # Nobody inside is taken for the owner, or answered without the replica's secret.
        ask = (
            "import os, urllib.request as r, urllib.error as e\n"
            "for path in ('/v1/auth/verify', '/v1/replica'):\n"
            "    try: print(r.urlopen(os.environ['QD_URL'] + path).status)\n"
            "    except e.HTTPError as refused: print(refused.code)"
        )
        asked = await qd("replica", "exec", "first", "--", "python3", "-c", ask)
        assert asked.split() == ["401", "401"]
        await _work_on_changes(qd, repository)
        await qd("replica", "rm", "first", "shop", "shop-fork", "--yes")
        assert left(engine) == []


async def test_another_service_takes_a_replica_over_in_a_turn(
    engine: Daemon, repository: Path, postgresql: Server
) -> None:
    """Its container runs on, and the turn, the queue and its work are those of the other service."""
    name = postgresql.create()
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="qd-")))
        front = Front(engine.host)
        await front.start()
        stack.push_async_callback(front.stop)
        decks: list[Deck] = []
        for place in ("one", "other"):
            home = Home(root / place)
            containers = DockerContainers(home, IMAGE, engine.address)
            await containers.open()
            stack.push_async_callback(containers.close)
            deck = Deck(home, containers, engine.host, postgresql.url(name))
            deck.way = HomeAddress(front.url)
            if decks:
                home.service.mkdir(mode=0o700, parents=True)
                shutil.copy(decks[0].home.master_key, home.master_key)
            await deck.start()
            stack.push_async_callback(deck.stop)
            decks.append(deck)
        one, other = decks
        front.ports = [other.port, one.port]
        id = await one.create(await one.environment(str(repository)))
        work = ("echo begun >> ran", "while ! [ -e go ]; do sleep 0.05; done", "echo done >> ran")
        await other.post(f"/v1/replica/{id}/messages", block(*work))
        await other.post(f"/v1/replica/{id}/messages", block("echo next >> ran"))
        await other.run(id, "while ! [ -e shop/ran ]; do sleep 0.05; done")
        await one.stop()
        long_ago = services.update().values(seen_at="2020-01-01T00:00:00.000Z")
        of_one = services.c.home_id == one.home.id.read_text().strip()
        await other.service.context.database.write(
            lambda c: c.execute(long_ago.where(of_one)) and None
        )
        await other.running(id, "touch shop/go; echo")
        results = await ended(other, id, 2)
        assert [result["stopReason"] for result in results] == ["end_turn"] * 2
        assert await other.run(id, "cat shop/ran") == "begun\ndone\nnext\n"
        await until_saved(other, id, "ran", "begun\ndone\nnext\n")
        await rest(other, id)
        await wake(other, id)
        assert await other.run(id, "cat shop/ran") == "begun\ndone\nnext\n"
        assert (await other.client.delete(f"/v1/replica/{id}")).status_code == 200
        assert left(engine) == []
    postgresql.drop(name)
