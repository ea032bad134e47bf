"""A cockpit over a service in whose replicas codex works with a scripted model."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from uuid import UUID

import pytest

from quarterdeck.wire.environment_parts import CreateFile
from quarterdeck.wire.environments import GLOBAL
from tests.real_agents.codex.place import programs
from tests.real_agents.model import thread
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.thread import ModelThread
from tests.tui_shell.conftest import fixed_clock_zone, installation
from tests.tui_shell.live import Installation

__all__ = ["fixed_clock_zone", "installation"]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    with thread.running(Responses()) as running:
        yield running


@pytest.fixture(scope="module")
def _with_codex() -> Iterator[None]:
    """Codex is on the PATH of what is started from here on, and has a key."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
        patched.setenv("OPENAI_API_KEY", "sk-of-the-tests")
        yield


@pytest.fixture
async def live(
    _with_codex: None,
    installation: Installation,
    model: ModelThread,
    require_tool: Callable[[str], str],
) -> AsyncIterator[Installation]:
    """The service, with codex's model in the global environment."""
    require_tool("bwrap")
    await installation.ready()
    async with installation.client() as client:
        text = f'openai_base_url = "{model.url}/v1"\nmodel = "gpt-5.5"\n'
        file = CreateFile(name="codex", path="~/.codex/config.toml", content=text)
        made = await client.environments.get(GLOBAL)
        added = await client.environment_files.add(made.id, file)
        yield installation
        await client.environment_files.delete(made.id, UUID(str(added.id)))
    await installation.clear()
