"""An API server of a cluster that answers anything: it is refused or believed, and nothing else happens."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from quarterdeck.sandboxes.container_engine import Launch
from quarterdeck.sandboxes.errors import ProcessError, SandboxError
from quarterdeck.sandboxes.kubernetes import containers as containers_module
from quarterdeck.sandboxes.kubernetes.containers import KubernetesContainers
from quarterdeck.sandboxes.kubernetes.objects import Cluster
from tests.containers.cluster import kubeconfig, pod
from tests.containers.fake_engine import variants

MOST_BYTES = 32 << 20
MOST_SECONDS = 60
LABELS = {"quarterdeck.launch": "d", "quarterdeck.owner": "other"}
ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "x"}}
WHOLE = pod(
    "u",
    LABELS,
    ENDED,
    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30},
    conditions=[
        {"type": "Ready", "status": "False", "lastTransitionTime": "2025-12-31T00:00:00Z"},
        {"type": "PodScheduled", "status": "False", "message": "none"},
    ],
)
DEPLOYMENT = {
    "metadata": {
        "name": "qd-w",
        "labels": LABELS,
        "annotations": {"quarterdeck.token-digest": "d", "quarterdeck.pod": "u"},
    },
    "spec": {"replicas": 1},
    "status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "m"}]},
}
GOOD: dict[str, Any] = {
    "GET version": {"gitVersion": "v1.30"},
    "GET deployments": {"items": [DEPLOYMENT]},
    "GET qd-w": DEPLOYMENT,
    "GET pods": {"items": [WHOLE, pod("v", LABELS, {"running": {}})]},
}


class ApiServer:
    """Answers with `GOOD`, or with a text from `damages`; `None` there has no end."""

    def __init__(self) -> None:
        self.damages: dict[str, str | None] = {}
        self.asked: list[str] = []
        self.sent = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        key = f"{request.method} {request.path.rpartition('/')[2]}"
        self.asked.append(key)
        damage = self.damages.get(key, json.dumps(GOOD.get(key, {})))
        if damage is not None:
            return web.Response(text=damage, content_type="application/json")
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"[1]," * (1 << 14))
            self.sent += 1 << 16


@pytest.fixture
async def opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ApiServer, KubernetesContainers]]:
    server = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{port}")))
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setattr(containers_module, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(containers_module, "REMOVAL_SECONDS", 0.01)
    containers = KubernetesContainers("mark", Cluster("image", storage_class="fast"))
    await containers.open()
    try:
        yield server, containers
    finally:
        await containers.close()
        await runner.cleanup()


async def _start(containers: KubernetesContainers) -> None:
    await containers.start(Launch("w", "d", {}, "small"), lambda _: None)


CALLS: dict[str, Callable[[KubernetesContainers], Awaitable[Any]]] = {
    "open": KubernetesContainers.open,
    "require": KubernetesContainers.require,
    "find": lambda c: c.find("w"),
    "has_volume": lambda c: c.has_volume("w"),
    "start": _start,
    "ended": lambda c: c.ended("w"),
    "stop": lambda c: c.stop("w"),
    "destroy": lambda c: c.destroy("w"),
    "tidy": KubernetesContainers.tidy,
}


async def _quietly(call: Awaitable[Any]) -> None:
    """Wait for a call's end, or give it up: it may wait for what the cluster says to come."""
    try:
        async with asyncio.timeout(0.1):
            await call
    except (SandboxError, ProcessError, TimeoutError):
        return


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS)
async def test_any_answer_is_refused_or_believed(
    opened: tuple[ApiServer, KubernetesContainers], call: str
) -> None:
    server, containers = opened
    server.asked.clear()
    await _quietly(CALLS[call](containers))
    wrong: list[str] = []
    tried = 0
    for key in dict.fromkeys(server.asked):
        damaged = ["", "{", "[" * 100_000, "NaN", *map(json.dumps, variants(GOOD.get(key)))]
        for damage in damaged:
            server.damages = {key: damage}
            tried += 1
            try:
                await _quietly(CALLS[call](containers))
            except Exception as e:  # noqa: BLE001 - all of them are listed
                wrong.append(f"{key}: {e!r} after {damage:.200}")
    assert wrong == [], f"{len(wrong)} of {tried}"


@pytest.mark.parametrize("call", CALLS)
async def test_an_answer_without_an_end_is_given_up(
    opened: tuple[ApiServer, KubernetesContainers], call: str
) -> None:
    server, containers = opened
    server.asked.clear()
    await _quietly(CALLS[call](containers))
    for key in dict.fromkeys(server.asked):
        server.damages[key], server.sent = None, 0
        try:
            async with asyncio.timeout(MOST_SECONDS):
                await CALLS[call](containers)
        except SandboxError:
            pass
        assert 0 < server.sent < MOST_BYTES, key
        del server.damages[key]
