"""Checks with a scripted source host, over doubled sandboxes and over real ones."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.checks.desk import Desk
from tests.checks.source_host import SourceHost
from tests.fleet.conftest import World, home, settings, world
from tests.support.git import make_repository
from tests.support.installation import Installation
from tests.system.conftest import installed

__all__ = ["home", "settings", "world"]


@pytest.fixture
def source_host() -> Iterator[SourceHost]:
    with SourceHost.running() as host:
        yield host


@pytest.fixture
async def desk(world: World, source_host: SourceHost) -> AsyncIterator[Desk]:
    """Automations whose checks are told to host A when a test says so."""
    made = Desk(world, source_host)
    await made.open()
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture(scope="module")
def _installation() -> Iterator[Installation]:
    with installed() as made:
        made.start()
        made.connect(str(make_repository(made.base / "shop")))
        yield made


@pytest.fixture
def deck(_installation: Installation, require_tool: Callable[[str], str]) -> Installation:
    """A running installation with real sandboxes."""
    require_tool("bwrap")
    require_tool("git")
    _installation.revive()
    return _installation
