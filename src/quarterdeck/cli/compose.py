"""The one place where the service meets its sandbox driver and the agents."""

from collections.abc import Callable, Sequence

from quarterdeck.agents.catalog import default_catalog
from quarterdeck.agents.port import AgentStatus
from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.identity.settings import NO_SETTINGS, IdentitySettings
from quarterdeck.service.listeners import Bound, Listener
from quarterdeck.service.server import serve
from quarterdeck.service.start import open_service
from quarterdeck.wire.agents import Agent, AgentModel


async def serve_home(
    home: Home,
    listeners: Sequence[Listener],
    ready: Callable[[list[Bound]], None],
    database_url: str | None = None,
    identity: IdentitySettings = NO_SETTINGS,
) -> None:
    """Runs the service of a home until it is told to stop; without a URL over its SQLite file.

    Raises:
        ServiceError: it cannot start; the text says what to do.
    """
    driver = ProcessDriver(home)
    async with open_service(home, driver, known_agents, database_url, identity) as context:
        await serve(context, listeners, ready)


def known_agents() -> list[Agent]:
    """The agents as this machine has them now. Looks at the disk, so it runs in a thread."""
    return [_agent(status) for status in default_catalog().statuses()]


def _agent(status: AgentStatus) -> Agent:
    return Agent(
        id=status.id,
        name=status.name,
        available=status.available,
        auth_method=status.auth_method,
        supports_goal=status.supports_goal,
        supports_plan=status.supports_plan,
        reason=status.reason,
        models=[AgentModel(id=id, display_name=name) for id, name in status.models],
        default_model=status.default_model,
        missing_keys=list(status.missing_keys),
    )
