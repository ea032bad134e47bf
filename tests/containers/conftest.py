"""A service whose replicas are in containers, or in processes that behave like these."""

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quarterdeck.local.home import Home
from tests.containers.deck import Deck
from tests.containers.processes import ProcessContainers


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
