"""How much a replica in a container may write, where the container engine can limit it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from quarterdeck import __version__
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.container_engine import Launch
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.image import VERSION_LABEL
from tests.containers.fake_engine import GOOD, ID, FakeEngine, answered, fake_engine, http

SIZE = 1 << 30
DOCKER = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option"
PODMAN = "Storage option overlay.size only supported for backingFS XFS. Found extfs"


async def used(engine: FakeEngine, address: str, home: Path, storage: int | None) -> list[str]:
    """Start a replica twice and run a command; return what the engine leaves open."""
    containers = DockerContainers(Home(home), "image", address)
    containers.storage = storage
    await containers.open()
    try:
        for _ in range(2):
            await containers.start(Launch("w", "d", {}, "small"), lambda _: None)
        await containers.in_image(("true",))
        return [gap.message for gap in (await containers.isolation()).gaps]
    finally:
        await containers.close()


def limits(engine: FakeEngine) -> list[Any]:
    """The limits that containers were asked for."""
    hosts = [one["HostConfig"] for one in engine.bodies if "HostConfig" in one]
    return [host.get("StorageOpt") for host in hosts]


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"Labels": {VERSION_LABEL: __version__}}
    monkeypatch.setitem(GOOD, "GET /images/image/json", {"Id": "sha256:1", "Config": labels})


async def test_what_is_written_outside_the_volume_is_limited(tmp_path: Path) -> None:
    async with fake_engine(tmp_path) as (engine, address):
        assert await used(engine, address, tmp_path / "home", SIZE) == []
        assert limits(engine) == [{"size": str(SIZE)}] * 3


async def test_nothing_is_limited_without_the_setting(tmp_path: Path) -> None:
    async with fake_engine(tmp_path) as (engine, address):
        (gap,) = await used(engine, address, tmp_path / "home", None)
        assert gap == "the disk space of a replica is not limited"
        assert limits(engine) == [None] * 3


@pytest.mark.parametrize("said", [DOCKER, PODMAN])
async def test_an_engine_that_cannot_limit_it_is_asked_once(tmp_path: Path, said: str) -> None:
    async with fake_engine(tmp_path) as (engine, address):

        async def create(writer: asyncio.StreamWriter) -> None:
            limited = "StorageOpt" in engine.bodies[-1]["HostConfig"]
            body = json.dumps({"message": said} if limited else {"Id": ID}).encode()
            writer.write(http(body, 500 if limited else 201, more="Connection: close\r\n"))

        engine.damages = {"POST /containers/create": create}
        (gap,) = await used(engine, address, tmp_path / "home", SIZE)
        assert "outside its volume" in gap
        assert limits(engine) == [{"size": str(SIZE)}, None, None, None]


async def test_images_of_containerd_ignore_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
    monkeypatch.setitem(GOOD, "GET /info", {**GOOD["GET /info"], **status})
    async with fake_engine(tmp_path) as (engine, address):
        (gap,) = await used(engine, address, tmp_path / "home", SIZE)
        assert "outside its volume" in gap
        assert limits(engine) == [None] * 3


async def test_another_refusal_is_not_taken_for_that(tmp_path: Path) -> None:
    said = {"message": "creating container storage: the container name is already in use"}
    async with fake_engine(tmp_path) as (engine, address):
        engine.damages = {"POST /containers/create": answered(said, 500)}
        with pytest.raises(SandboxError, match="already in use"):
            await used(engine, address, tmp_path / "home", SIZE)
        assert limits(engine) == [{"size": str(SIZE)}]
