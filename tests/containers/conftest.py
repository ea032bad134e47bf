"""A service whose replicas are in containers, or in processes that behave like these."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.local.home import Home
from tests.containers.daemons import (
    BASE,
    IMAGE,
    Daemon,
    DockerEngine,
    Podman,
    configure,
    started,
)
from tests.containers.deck import Deck
from tests.containers.processes import ProcessContainers
from tests.containers.swarms import Swarm, started_swarm


@pytest.fixture(scope="session", params=[DockerEngine, Podman], ids=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    with started(request.param) as made:
        _build_image(made)
        yield made


@pytest.fixture(scope="session")
def swarm() -> Iterator[Swarm]:
    with started_swarm() as made:
        _build_image(made.manager)
        made.share_image()
        yield made


def _build_image(engine: Daemon) -> None:
    with TemporaryDirectory(prefix="qd-") as home:
        configure(Path(home), engine)
        program = (sys.executable, "-I", "-m", "quarterdeck")
        built = subprocess.run(
            [*program, "image", "build", "--base", BASE, "--wheels", engine.parts / "wheels"],
            env={**os.environ, "QUARTERDECK_HOME": home},
            capture_output=True,
            text=True,
        )
        assert built.returncode == 0, built.stderr
        assert f"Built {IMAGE}." in built.stderr


@pytest.fixture
async def deck() -> AsyncIterator[Deck]:
    with TemporaryDirectory(prefix="qd-") as directory:
        root = Path(directory)
        containers = ProcessContainers(root / "volumes")
        made = Deck(Home(root / "home"), containers, "127.0.0.1")
        await made.start()
        try:
            yield made
        finally:
            await made.stop()
            await containers.kill_all()
