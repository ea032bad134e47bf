"""A manager of a Swarm that answers anything: it is refused or believed, and nothing else happens."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck import __version__
from quarterdeck.local.home import Home
from quarterdeck.sandboxes import swarm
from quarterdeck.sandboxes.container_engine import Launch
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.image import VERSION_LABEL
from quarterdeck.sandboxes.swarm import SwarmContainers
from tests.containers.fake_engine import GOOD, ID, FakeEngine, answered, fake_engine, variants
from tests.support.waiting import eventually

LABELS = {"quarterdeck.home": "h", "quarterdeck.workspace": "w", "quarterdeck.token-digest": "d"}
TEMPLATE = {"ContainerSpec": {"Labels": LABELS}}
NODE = {
    "ID": ID,
    "Status": {"State": "ready"},
    "Spec": {"Availability": "active"},
    "Description": {"Hostname": "n", "Resources": {"NanoCPUs": 2_000_000_000}},
}
SERVICE = {
    "ID": ID,
    "Version": {"Index": 1},
    "Spec": {
        "Labels": {"quarterdeck.files": ID},
        "TaskTemplate": TEMPLATE,
        "Mode": {"Replicated": {"Replicas": 1}},
    },
}
TASK = {
    "Spec": TEMPLATE,
    "Status": {"State": "failed", "Err": "an error"},
    "DesiredState": "running",
    "NodeID": ID,
}


@pytest.fixture
async def opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[FakeEngine, SwarmContainers]]:
    monkeypatch.setattr(swarm, "_STEP", 0.001)
    monkeypatch.setattr(swarm, "END_SECONDS", 0.01)
    monkeypatch.setattr(swarm, "WATCH_SECONDS", 0.001)
    labels = {"Labels": {VERSION_LABEL: __version__}}
    member = {"ControlAvailable": True, "NodeAddr": "192.0.2.1"}
    for key, value in {
        "GET /images/image/json": {"Id": "sha256:1", "Config": labels, "RepoDigests": ["image@x"]},
        "GET /info": {**GOOD["GET /info"], "Swarm": member},
        "GET /networks/bridge": GOOD["GET /networks/quarterdeck"],
        "GET /services": SERVICE,
        "GET /nodes": [NODE],
        "GET /nodes of one": NODE,
        "GET /tasks": [TASK],
    }.items():
        monkeypatch.setitem(GOOD, key, value)
    monkeypatch.setitem(GOOD, "GET /networks/quarterdeck", GOOD["GET /networks/bridge"])
    async with fake_engine(tmp_path) as (engine, address):
        containers = SwarmContainers(Home(tmp_path / "home"), "image", address)
        await containers.open()
        try:
            yield engine, containers
        finally:
            await containers.close()


async def _start(containers: SwarmContainers) -> None:
    await containers.start(Launch("w", "d", {}, "small", needs_files=True), lambda _: None)


CALLS: dict[str, Callable[[SwarmContainers], Awaitable[Any]]] = {
    "open": SwarmContainers.open,
    "summary": SwarmContainers.summary,
    "find": lambda c: c.find("w"),
    "has_volume": lambda c: c.has_volume("w"),
    "note_files": lambda c: c.note_files("w"),
    "ended": lambda c: c.ended("w"),
    "start": _start,
    "destroy": lambda c: c.destroy("w"),
}


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS)
async def test_any_answer_is_refused_or_believed(
    opened: tuple[FakeEngine, SwarmContainers], call: str
) -> None:
    engine, containers = opened
    engine.asked.clear()
    await CALLS[call](containers)
    wrong: list[str] = []
    tried = 0
    for key in dict.fromkeys(engine.asked):
        for damage in variants(GOOD.get(key)):
            engine.damages = {key: answered(damage)}
            tried += 1
            try:
                async with asyncio.timeout(0.2):  # it may wait for what the manager says to come
                    await CALLS[call](containers)
            except (SandboxError, TimeoutError):
                pass
            except Exception as e:  # noqa: BLE001 - all of them are listed
                wrong.append(f"{key}: {e!r} after {damage!r:.200}")
    assert wrong == [], f"{len(wrong)} of {tried}"


async def test_the_watch_of_nodes_goes_on(
    opened: tuple[FakeEngine, SwarmContainers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of others may have labels of ours, and a manager may answer anything."""
    engine, containers = opened
    lost = asyncio.Event()
    watching = asyncio.create_task(containers.watch(lambda _: lost.set()))
    down = {**NODE, "Status": {"State": "down"}}
    forged = {**TASK, "Spec": {"ContainerSpec": {"Labels": {"quarterdeck.home": "h"}}}}
    try:
        for damaged in ([{"Spec": 7}], [{"Spec": {"ContainerSpec": {"Labels": ["a"]}}}], 7):
            engine.damages = {"GET /nodes": answered([down]), "GET /tasks": answered(damaged)}
            count = len(engine.asked)
            await eventually(lambda n=count: len(engine.asked) > n + 4, "further looks")
        running = {**TASK, "Status": {"State": "running"}}
        engine.damages = {
            "GET /nodes": answered([down]),
            "GET /nodes of one": answered(down),
            "GET /tasks": answered([forged, running]),
        }
        await eventually(lambda: lost.is_set() or watching.done(), "the loss")
        assert lost.is_set() and not watching.done()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
