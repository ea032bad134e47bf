"""Replicas in a cluster, with an API server of the tests and real engines."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.engine.dial_home import NoBootError, ServiceAddress, fetch_boot
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import EngineAwayError, ProcessError, SandboxError
from quarterdeck.sandboxes.kubernetes.driver import KubernetesDriver
from tests.containers.cluster import (
    CLAIMS,
    DEPLOYMENTS,
    PODS,
    SECRETS,
    ClusterApi,
    Node,
    ProcessCluster,
    pod,
    serving,
)
from tests.containers.deck import Deck
from tests.containers.losses import (
    Lose,
    block,
    ended,
    lost_in_a_turn,
    lost_in_sleep,
    rest,
    wake,
)
from tests.containers.processes import ProcessContainers
from tests.support.git import git, make_repository
from tests.support.waiting import eventually


class ClusterDeck(Deck):
    kind = KubernetesDriver
    api: ClusterApi
    node: Node
    pods: ProcessCluster

    def name(self, id: str) -> str:
        """Of the one pod of a replica."""
        labels = (
            (name, self.api.get(PODS, name)["metadata"]["labels"]) for name in self.api.names(PODS)
        )
        (found,) = [name for name, one in labels if one["quarterdeck.workspace"] == id]
        return found


@pytest.fixture
async def deck(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClusterDeck]:
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="qd-")))
        api, config = await stack.enter_async_context(serving(root))
        monkeypatch.setenv("KUBECONFIG", str(config))
        processes = ProcessContainers(root / "volumes")
        stack.push_async_callback(processes.kill_all)
        pods = ProcessCluster(processes, storage_class="standard")
        stack.push_async_callback(pods.close)
        await pods.open()
        made = ClusterDeck(Home(root / "home"), pods, "127.0.0.1")
        made.api, made.node, made.pods = api, Node(api, processes), pods
        await made.start()
        stack.push_async_callback(made.stop)
        yield made


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop")


async def test_a_replica_lives_sleeps_and_goes(deck: ClusterDeck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    assert (await deck.run(id, "cd shop && git status --short --branch")).startswith("## ")
    assert "from a terminal" in await deck.in_terminal(id, "echo from a terminal")
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    # Git runs in the engine: the pod's files are reached through nothing else.
    git(repository, "commit", "-q", "--allow-empty", "-m", "from the source")
    await deck.post(f"/v1/replica/{id}/git/shop/update", {})
    assert "from the source" in await deck.run(id, "cd shop && git log --format=%s")
    await rest(deck, id)
    assert deck.api.names(PODS) == [] and deck.api.names(CLAIMS) == [f"qd-{id}"]
    assert deck.api.get(DEPLOYMENTS, f"qd-{id}")["spec"]["replicas"] == 0
    await wake(deck, id)
    assert await deck.run(id, "cat shop/turn") == "turn\n"
    await deck.client.delete(f"/v1/replica/{id}")
    for kind in (PODS, DEPLOYMENTS, SECRETS, CLAIMS):
        assert deck.api.names(kind) == []


@pytest.fixture
def lose(deck: ClusterDeck) -> Lose:
    """The node is lost with its volume: the cluster makes another pod, which has no configuration."""

    async def lose(id: str) -> None:
        for name in deck.api.names(PODS):
            await deck.node.end(name)
        await deck.pods.processes.destroy(id)
        await deck.node.reconcile()
        deck.driver.switchboard.end(id)

    return lose


@pytest.mark.long
async def test_a_node_is_lost_while_a_replica_sleeps(
    deck: ClusterDeck, repository: Path, lose: Lose
) -> None:
    await lost_in_sleep(deck, await deck.environment(str(repository)), lose)


@pytest.mark.long
async def test_a_node_is_lost_in_a_turn(deck: ClusterDeck, repository: Path, lose: Lose) -> None:
    await lost_in_a_turn(deck, await deck.environment(str(repository)), lose)


@pytest.mark.long
async def test_a_pod_of_another_incarnation_is_refused(deck: ClusterDeck) -> None:
    id = await deck.create(await deck.environment())
    (started,) = deck.pods.processes.launches
    found = await deck.pods.find(id)
    assert found.state == "running" and found.digest is not None
    address = ServiceAddress(deck.url, id)
    # The cluster makes another pod: it gets no configuration, and the old one is let in no more.
    deck.api.get(PODS, deck.name(id)).patch({"metadata": {"uid": "another"}})
    assert (await deck.pods.find(id)).state == "lost"
    with pytest.raises(NoBootError, match="403"):
        await fetch_boot(address, started.environment["QD_BOOT_TOKEN"])
    # Its line breaks: it is let in no more, and another one is started.
    deck.driver.switchboard.end(id)
    await eventually(lambda: len(deck.pods.processes.launches) > 1, "the next start")
    assert await deck.running(id, "echo again") == "again\n"
    assert (await deck.pods.find(id)).digest not in (None, found.digest)


@pytest.mark.long
async def test_the_service_outlives_the_api_server(deck: ClusterDeck) -> None:
    id = await deck.create(await deck.environment())
    before = await deck.run(id, "echo $PPID")
    deck.api.refusals["*", "*"] = (401, "Unauthorized")
    with pytest.raises(EngineAwayError, match="does not accept the service's credentials"):
        await deck.pods.find(id)
    # What is connected is used on; the next start waits, and says why.
    assert await deck.run(id, "echo $PPID") == before
    body = {"name": "later", "environment_id": await deck.environment()}
    answer = await deck.client.post("/v1/replica", json=body)
    assert answer.status_code == 503 and "credentials" in answer.text
    assert deck.pods.absence is not None
    deck.api.refusals.clear()
    await deck.pods.open()
    assert deck.pods.absence is None
    await deck.stop()
    await deck.start()
    assert await deck.running(id, "echo $PPID") == before


async def test_a_missing_right_is_named(deck: ClusterDeck) -> None:
    said = 'secrets is forbidden: User "deck" cannot create resource "secrets"'
    deck.api.refusals["create", "secrets"] = (403, said)
    body = {"name": "one", "environment_id": await deck.environment()}
    id = (await deck.post("/v1/replica", body, 201))["replica"]["id"]
    error = (await deck.reach(id, "error"))["error"]
    assert said in error and "give the service the Role" in error


@pytest.mark.long
async def test_an_earlier_deployment_and_secret_are_replaced(deck: ClusterDeck) -> None:
    """Also when the API server answers that they are still there."""
    id = await deck.create(await deck.environment())
    await rest(deck, id)
    earlier = deck.api.get(SECRETS, f"qd-{id}")["stringData"]["QD_BOOT_TOKEN"]
    deck.api.refusals["delete", "deployments"] = (404, "it is being removed already")
    waking = asyncio.create_task(wake(deck, id))

    await eventually(lambda: deck.api.asked.count(("create", "deployments")) > 2, "a second try")
    deck.api.refusals.clear()
    await waking
    assert deck.api.get(SECRETS, f"qd-{id}")["stringData"]["QD_BOOT_TOKEN"] != earlier


async def test_commands_of_an_image(deck: ClusterDeck) -> None:
    """Its output is in the log of a pod, and nothing of it is left."""
    deck.api.node = None

    async def answer(log: str) -> None:
        (name,) = await eventually(lambda: deck.api.names(DEPLOYMENTS), "a Deployment")
        labels = dict(deck.api.get(DEPLOYMENTS, name)["metadata"]["labels"])
        assert deck.api.get(SECRETS, name)["stringData"] == {"COMMAND_INPUT": "{}"}
        made = pod(labels=labels, state={"running": {}}, container={"imageID": "sha256:1"})
        deck.api.logs[made["metadata"]["name"]] = log
        deck.api.put(PODS, made)

    asking = asyncio.create_task(deck.pods.in_image(("answer",), b"{}"))
    await answer("[1]\nquarterdeck-ended 0\n")
    assert await asking == b"[1]"
    assert await deck.pods.image() == ("sha256:1", None)
    asking = asyncio.create_task(deck.pods.in_image(("answer",), b"{}"))
    await answer("no such file\nquarterdeck-ended 127\n")
    with pytest.raises(ProcessError, match="no such file"):
        await asking
    assert deck.api.names(DEPLOYMENTS) == deck.api.names(SECRETS) == []


@pytest.mark.long
async def test_nothing_is_kept_without_a_save(deck: ClusterDeck, repository: Path) -> None:
    id = await deck.create(await deck.environment(str(repository)))
    assert await deck.driver.kept_file(id, "../etc", b"passwd", 100) is None
    assert not await deck.driver.copy_files(id, id)
    await rest(deck, id)
    with pytest.raises(SandboxError, match="Wake it first"):
        async for _ in deck.driver.stream_command(id, ("true",), directory="/"):
            pass
