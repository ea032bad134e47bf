"""A person's own agents: from the configuration file, through the service, to the engines."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

AGENTS_VARIABLE = "QUARTERDECK_AGENTS"
"""Tells the built-in agent what it cannot see: `KnownAgents` as JSON."""

Text = Annotated[str, Field(min_length=1)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class OwnAgent(BaseModel):
    """An agent that speaks the Agent Client Protocol on its standard streams."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Text
    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Program, by name or absolute path, and its arguments."""
    keys: tuple[Variable, ...] = ()
    """Variables that hold its key: one of them is enough, the first is given the stored one."""
    environment: dict[Variable, str] = {}
    """Variables it is started with. Everything in a replica can read them: no place for secrets."""
    model_variable: Variable | None = None
    model_arguments: tuple[str, ...] = ()
    auth_method: Text | None = None
    supports_plan: bool = False
    models: dict[Text, Text] = {}
    default_model: Text | None = None
    install: Text | None = None
    """How a person gets it."""
    logins: tuple[Text, ...] = ()
    version_arguments: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """Further paths of the machine that replicas see, read-only, because it needs them."""


class KnownAgents(BaseModel):
    """What the engine knows of agents beyond what lies in the sandbox; no secret is in it."""

    own: dict[str, OwnAgent] = {}
    keyed: list[str] = []
    """Agents whose process is given a key by the service."""
