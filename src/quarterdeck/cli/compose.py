"""The one place where the service meets its sandbox driver and the agents."""

import os
from collections.abc import Callable, Mapping, Sequence

from quarterdeck.agents.known import own_keys
from quarterdeck.cli.agents_here import agents_here, wanted_inside
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.hosts.settings import NO_HOSTS, HostsSettings
from quarterdeck.service.identity.settings import NO_SETTINGS, IdentitySettings
from quarterdeck.service.listeners import Bound, Listener
from quarterdeck.service.server import serve
from quarterdeck.service.start import open_service
from quarterdeck.wire.own_agents import OwnAgent


async def serve_home(
    home: Home,
    listeners: Sequence[Listener],
    ready: Callable[[list[Bound]], None],
    database_url: str | None = None,
    identity: IdentitySettings = NO_SETTINGS,
    hosts: HostsSettings = NO_HOSTS,
    advertise: str | None = None,
    agents: Mapping[str, OwnAgent] | None = None,
) -> None:
    """Runs the service of a home until it is told to stop; without a URL over its SQLite file.

    Args:
        agents: those that a person added to the release's.

    Raises:
        ServiceError: it cannot start; the text says what to do.
    """
    own = agents or {}
    driver = ProcessDriver(home, wanted=lambda: wanted_inside(own))
    async with open_service(
        home,
        driver,
        lambda: agents_here(home, own),
        database_url,
        identity,
        hosts,
        own_agents=own,
        own_keys=lambda: own_keys(os.environ),
    ) as context:
        await serve(context, listeners, ready, advertise)
