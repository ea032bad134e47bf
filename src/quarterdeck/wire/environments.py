"""Environments: what a workspace is made from (INTERFACE 7)."""

from typing import Annotated, Literal

from pydantic import Field

from quarterdeck.wire.base import Body, Id, Record, Timestamp

GLOBAL = "global"
"""The literal that stands for the organization's global environment in paths."""


class Environment(Record):
    """One environment. The counts tell how much it carries, not what."""

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

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scope: Literal["org", "user"] = "org"
    description: str | None = None
    repository_id: Id | None = None
    repository_set_id: Id | None = None
    system_prompt: str | None = None
    personal_preferences: str | None = None
    source_environment_id: Id | None = None
