"""The agents of the Agent Client Protocol, from the cockpit: a turn, a question, an interrupt."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from uuid import uuid4

import pytest

from quarterdeck.tui.widgets.question import QuestionDock
from quarterdeck.wire.environment_parts import CreateFile, CreateVariable
from quarterdeck.wire.environments import CreateEnvironment
from quarterdeck.wire.replicas import CreateReplica
from tests.real_agents.acp.agents import KEY, RealAgent
from tests.real_agents.acp.conftest import agent
from tests.real_agents.model import thread
from tests.real_agents.model.anthropic import Anthropic
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.gemini import Gemini
from tests.real_agents.model.thread import ModelThread
from tests.real_agents.served import SYSTEM_PATH
from tests.support.waiting import eventually
from tests.tui_files.shop import running_shop
from tests.tui_shell.live import Desk, Installation

pytestmark = pytest.mark.long

__all__ = ["agent"]

FIRST_TURN = 100.0
"""Seconds: some agents take long to start."""


@pytest.fixture(scope="module")
def model(agent: RealAgent) -> Iterator[ModelThread]:
    with thread.running(Chat(), Anthropic(), Gemini()) as running:
        yield running


@pytest.fixture(scope="module")
def _with_agent(agent: RealAgent) -> Iterator[None]:
    """The agent is on the PATH of what is started from here on."""
    agent.require()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", f"{agent.path}:{os.environ['PATH']}")
        yield


@pytest.fixture(scope="module")
def installation(
    _with_agent: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """A service for each agent: it finds programs on the PATH that it was started with."""
    with running_shop(tmp_path_factory.mktemp("work"), {"README": "A shop.\n"}) as made:
        yield made


@pytest.fixture
async def live(
    installation: Installation,
    agent: RealAgent,
    model: ModelThread,
    require_tool: Callable[[str], str],
) -> AsyncIterator[Installation]:
    """The service, and a replica whose agent is led to the model."""
    require_tool("bwrap")
    await installation.ready()
    variables = {**agent.variables(model.url), "PATH": f"{agent.path}:{SYSTEM_PATH}"}
    async with installation.client() as client:
        await client.credentials.set(agent.id, KEY)
        made = await client.environments.create(
            CreateEnvironment(name=f"{agent.id} {uuid4().hex}", scope="user")
        )
        for number, (path, text) in enumerate(agent.files(model.url).items()):
            file = CreateFile(name=f"file {number}", path=f"~/{path}", content=text)
            await client.environment_files.add(made.id, file)
        for key, value in variables.items():
            await client.variables.add(made.id, CreateVariable(key=key, value=value))
        body = CreateReplica(
            name="led",
            environment_id=made.id,
            coding_agent=agent.id,
            model=agent.models[0],
        )
        await client.replicas.create(body)
    yield installation
    await installation.clear()


async def allow(desk: Desk) -> None:
    """Allows what is asked in a turn, once or more, until the turn is over."""

    def asked() -> set[int]:
        chat = desk.replica("led").first_chat
        assert chat is not None and chat.transcript is not None
        if not desk.app.screen.query_one(QuestionDock).display:
            return set()  # its keys would go to the composer
        return set([one.id for one in chat.transcript.open_questions][:1]) - answered

    answered: set[int] = set()
    answer = await eventually(asked, "a question", FIRST_TURN)
    while answer is not True:
        answered |= answer
        await desk.press("alt+q", "y")
        answer = await eventually(lambda: asked() or "○ idle" in desk.text)


async def test_a_chat_streams_asks_and_is_interrupted(live: Installation, agent: RealAgent) -> None:
    async with live.cockpit() as desk:
        await desk.see("led", "idle")
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.see("enter sends ")
        await desk.write("shell echo $((40+2)) > n; cat n\nshell rm n\nsay it is gone")
        await desk.press("enter")
        await allow(desk)
        await eventually(lambda: desk.text.count("it is gone") == 2, "the answer below the message")
        await eventually(lambda: desk.focus == "Composer")
        await desk.write("say begun\nwait never")
        await desk.press("enter")
        await eventually(lambda: desk.text.count("begun") == 2, "the beginning of the answer")
        await desk.see("● working")
        await desk.press("ctrl+x")
        await desk.see("Interrupted", "○ idle")
