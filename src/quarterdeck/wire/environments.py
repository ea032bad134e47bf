"""Environments: what a workspace is made from (INTERFACE 7)."""

from typing import Annotated, Literal

from pydantic import Field

from quarterdeck.wire.base import Body, GivenId, Id, Patch, Record, Timestamp
from quarterdeck.wire.stored_text import ONE_LINE, Text

GLOBAL = "global"
"""The literal that stands for the organization's global environment in paths."""


Name = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]


class Environment(Record):
    """One environment. The counts tell how much it carries itself, not what.

    Of one with a source, binding and system prompt are the source's.
    """

    id: Id
    organization_id: Id
    user_id: Id | None = None
    name: str
    description: str | None = None
    is_global: bool = False
    repository_id: Id | None = None
    repository_set_id: Id | None = None
    system_prompt: str | None = None
    personal_preferences: str | None = None
    source_environment_id: Id | None = None
    variable_count: int = 0
    file_count: int = 0
    skill_count: int = 0
    mcp_count: int = 0
    created_at: Timestamp
    updated_at: Timestamp


class EnvironmentList(Record):
    """Answer of `GET /v1/environments`."""

    environments: list[Environment]


class EnvironmentAnswer(Record):
    """Answer of creating, reading or changing one environment."""

    environment: Environment


class CreateEnvironment(Body):
    """Body of `POST /v1/environments`; the name is unique in its scope (409)."""

    name: Name
    scope: Literal["org", "user"] = "org"
    description: Text | None = None
    repository_id: GivenId | None = None
    repository_set_id: GivenId | None = None
    system_prompt: Text | None = None
    personal_preferences: Text | None = None
    source_environment_id: GivenId | None = None


class ChangeEnvironment(Patch):
    """Body of `PATCH /v1/environments/{id}`; what is not given stays, null clears.

    Binding and system prompt of one with a source are locked, and so is the source itself (400).
    """

    name: Name = Field(default_factory=str)
    description: Text | None = None
    repository_id: GivenId | None = None
    repository_set_id: GivenId | None = None
    system_prompt: Text | None = None
    personal_preferences: Text | None = None
    source_environment_id: GivenId | None = None
    """May be given as it is."""
