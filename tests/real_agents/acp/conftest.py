"""The agents, each with a model that does what it is told. One process serves a whole module."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.agents.conftest import appears, gone
from tests.real_agents.acp.agents import CLAUDE, COPILOT, GEMINI, OPENCODE, RealAgent
from tests.real_agents.acp.place import Place, Talk
from tests.real_agents.acp.servers import notes_server
from tests.real_agents.model.anthropic import Anthropic
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.gemini import Gemini
from tests.real_agents.model.server import Model

__all__ = ["appears", "gone"]

MORE = pytest.mark.more_agents


@pytest.fixture(
    scope="module",
    params=[OPENCODE, *(pytest.param(one, marks=MORE) for one in (CLAUDE, COPILOT, GEMINI))],
    ids=lambda agent: agent.id,
)
def agent(request: pytest.FixtureRequest) -> RealAgent:
    return request.param


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(agent: RealAgent) -> AsyncIterator[Model]:
    """One for each agent: what it was asked, and what was let go, is of that agent."""
    async with Model.running(Chat(), Anthropic(), Gemini()) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    agent: RealAgent, model: Model, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Talk]:
    root = tmp_path_factory.mktemp(agent.id)
    place = Place(agent, root, model, servers=(notes_server(root / "notes"),))
    try:
        yield Talk(place, await place.open())
    finally:
        await place.close()


@pytest_asyncio.fixture(loop_scope="module")
async def talk(shared: Talk) -> AsyncIterator[Talk]:
    """The session that all tests of a module share, with nothing heard so far."""
    shared.begin_part()
    shared.model.forget()
    yield shared
    await shared.session.interrupt()
