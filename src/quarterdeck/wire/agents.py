"""Coding agents and their models (INTERFACE 4)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import CamelRecord, Record

BUILTIN = "builtin"
"""The agent that needs no model and no account."""


class AgentModel(CamelRecord):
    """A model that an agent offers."""

    id: str
    display_name: str


class Agent(Record):
    """One agent as the service offers it. The identifier is an open string for clients."""

    id: str
    name: str
    available: bool
    auth_method: str | None = None
    supports_goal: bool = False
    supports_plan: bool = False
    reason: str | None = None
    """Why it is not available, and what to do (own field)."""
    installed: bool = False
    """Whether its program is on the service's machine (own field, like those that follow)."""
    version: str | None = None
    """The installed version, where it is known."""
    install: str | None = None
    """The command that installs it."""
    login_found: bool = False
    """Whether whoever runs the service logged in with it; replicas do not see that login."""
    models: Annotated[list[AgentModel], Field(exclude=True)] = []
    """The models it is known to offer; asked for separately."""
    default_model: Annotated[str | None, Field(exclude=True)] = None
    missing_keys: Annotated[list[str], Field(exclude=True)] = []
    """Set when only a key is missing: the variables of which one would do."""
    logins: Annotated[list[str], Field(exclude=True)] = []
    """Files below a replica's home directory of which one would do as well."""
    own_key: Annotated[str | None, Field(exclude=True)] = None
    """The variable of the service's own environment that holds its key, for the owner's replicas."""


class AgentList(Record):
    """Answer of `GET /v1/agents`."""

    agents: list[Agent]


class AgentModels(CamelRecord):
    """Answer of `GET /v1/agents/{agent}/models`; without a default the agent chooses itself."""

    models: list[AgentModel]
    default_model: str | None = None
