"""Replicas in a cluster, with an API server of the tests and real engines."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.kubernetes.driver import KubernetesDriver
from tests.containers.cluster import (
    CLAIMS,
    DEPLOYMENTS,
    PODS,
    SECRETS,
    ClusterApi,
    Node,
    ProcessCluster,
    serving,
)
from tests.containers.deck import Deck
from tests.containers.losses import block, ended, rest, wake
from tests.containers.processes import ProcessContainers
from tests.support.git import make_repository


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
    # What the service runs beside the engine goes over its connections, too.
    diff = await deck.get(f"/v1/replica/{id}/git/diff")
    assert "turn" in str(diff)
    await rest(deck, id)
    assert deck.api.names(PODS) == [] and deck.api.names(CLAIMS) == [f"qd-{id}"]
    assert deck.api.get(DEPLOYMENTS, f"qd-{id}")["spec"]["replicas"] == 0
    await wake(deck, id)
    assert await deck.run(id, "cat shop/turn") == "turn\n"
    await deck.client.delete(f"/v1/replica/{id}")
    for kind in (PODS, DEPLOYMENTS, SECRETS, CLAIMS):
        assert deck.api.names(kind) == []
