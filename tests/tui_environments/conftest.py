"""A service of its own for the screen of environments."""

from collections.abc import AsyncIterator

import pytest

from quarterdeck.wire.environments import GLOBAL
from tests.tui_shell.conftest import fixed_clock_zone as fixed_clock_zone
from tests.tui_shell.conftest import frozen as frozen
from tests.tui_shell.conftest import installation as installation
from tests.tui_shell.live import Installation


async def empty(installation: Installation) -> None:
    """Deletes every environment, and what the global one carries."""
    async with installation.client() as client:
        for variable in await client.variables.list(GLOBAL):
            await client.variables.delete(GLOBAL, variable.id)
        found = await client.environments.list(scope="all")
        for one in sorted(found, key=lambda one: one.source_environment_id is None):
            if not one.is_global:
                await client.environments.delete(one.id)


@pytest.fixture
async def live(installation: Installation) -> AsyncIterator[Installation]:
    """The service without environments, before and after."""
    if installation.process is None or installation.process.poll() is not None:
        installation.start()
    await installation.ready()
    await empty(installation)
    yield installation
    if installation.process is None or installation.process.poll() is not None:
        installation.start()
        await installation.ready()
    await empty(installation)
