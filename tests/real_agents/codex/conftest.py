"""A model that does what it is told, and a place where codex works with it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agents.conftest import Heard
from tests.real_agents.codex.place import Place
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.server import Model


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with Model.running(Responses()) as running:
        yield running


@pytest.fixture
async def place(model: Model, tmp_path: Path) -> AsyncIterator[Place]:
    home, directory = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    directory.mkdir()
    made = Place(home, directory, model, Heard())
    yield made
    for session in made.sessions:
        await session.close()
