"""The agents of this machine: those of the release, and the configuration file's."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.cli.config_path import config_path
from quarterdeck.local.home import Home
from quarterdeck.local.programs import person_path
from quarterdeck.wire.agents import Agent, AgentModel
from quarterdeck.wire.own_agents import OwnAgent

if TYPE_CHECKING:
    from quarterdeck.agents.port import AgentStatus
    from quarterdeck.sandboxes.shown import Wanted


def own_agents() -> Mapping[str, OwnAgent]:
    """The agents that a person added.

    Raises:
        ConfigFault: the file is wrong.
    """
    path = config_path()
    if not path.exists():
        return {}
    from quarterdeck.cli.config import read_config

    return read_config(path).agents


def agents_here(home: Home, own: Mapping[str, OwnAgent]) -> list[Agent]:
    """The agents as this machine has them now. Looks at the disk, so it runs in a thread."""
    from quarterdeck.agents.catalog import default_catalog

    environment = {**os.environ, "PATH": person_path(home)}
    return [_agent(status) for status in default_catalog(environment, own, host=True).statuses()]


def wanted_inside(own: Mapping[str, OwnAgent]) -> "Wanted":
    """What sandboxes are shown of this machine, so that the agents run in them."""
    from quarterdeck.agents.known import programs_of
    from quarterdeck.sandboxes.shown import Wanted

    paths = [Path(path) for agent in own.values() for path in agent.shown]
    return Wanted(programs_of(own), tuple(paths))


def _agent(status: "AgentStatus") -> Agent:
    return Agent(
        id=status.id,
        name=status.name,
        available=status.available,
        auth_method=status.auth_method,
        supports_goal=status.supports_goal,
        supports_plan=status.supports_plan,
        reason=status.reason,
        installed=status.installed,
        version=status.version,
        install=status.install,
        login_found=status.login_found,
        models=[AgentModel(id=id, display_name=name) for id, name in status.models],
        default_model=status.default_model,
        missing_keys=list(status.missing_keys),
        logins=list(status.logins),
        own_key=status.own_key,
    )
