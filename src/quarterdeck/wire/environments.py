"""Environments, their warm pools and the tests of their hooks."""

from typing import Annotated, Literal

from pydantic import Field

from quarterdeck.wire.base import (
    ONE_LINE,
    Body,
    GivenId,
    Id,
    Patch,
    Record,
    Switch,
    Text,
    Timestamp,
)
from quarterdeck.wire.permissions import (
    CostLimit,
    PermissionPolicy,
    PermissionRule,
    PushPolicy,
    Rules,
)

GLOBAL = "global"
"""The organization's global environment in paths."""


Name = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
CoAuthor = Annotated[str, Field(max_length=200, pattern=r"^[^<>\s][^<>]* <[^<>\s]+>$"), ONE_LINE]
"""A name and an address, as git writes them: `NAME <ADDRESS>`."""


class Environment(Record):
    """One environment. The counts are of its own contents. With a source, binding and system prompt are the source's."""

    id: Id
    """Unique id."""
    organization_id: Id
    """Organization it belongs to."""
    user_id: Id | None = None
    """User that it belongs to; null when it is the organization's."""
    name: str
    """Name, unique in its scope."""
    description: str | None = None
    """Free text about it."""
    is_global: bool = False
    """Whether it is the organization's global environment, which all others build on."""
    repository_id: Id | None = None
    """Repository that workspaces contain."""
    repository_set_id: Id | None = None
    """Repository set that workspaces contain."""
    system_prompt: str | None = None
    """Instructions for agents."""
    personal_preferences: str | None = None
    """Further instructions for agents, from the user."""
    push: PushPolicy | None = None
    """What agents may push; null: as the global environment says, else `ask`."""
    co_author: str | None = None
    """`NAME <ADDRESS>` that commits of agents name in a `Co-authored-by` line; null: as the global
    environment says, else none."""
    permission_policy: PermissionPolicy | None = None
    """What agents may do without asking; null: as the global environment says, else `ask`."""
    permission_rules: list[PermissionRule] = []
    """Rules by which commands are allowed or rejected without asking."""
    cost_limit: float | None = None
    """Dollars that the agents of each replica may cost; null: as the global environment says."""
    source_environment_id: Id | None = None
    """Shared environment that a personal one inherits from."""
    variable_count: int = 0
    """Number of its own variables."""
    file_count: int = 0
    """Number of its own files."""
    skill_count: int = 0
    """Number of its own skills."""
    mcp_count: int = 0
    """Number of its own MCP servers."""
    created_at: Timestamp
    """When it was created."""
    updated_at: Timestamp
    """When it was last changed."""


class EnvironmentList(Record):
    """Answer of `GET /v1/environments`."""

    environments: list[Environment]
    """Environments."""


class EnvironmentAnswer(Record):
    """Answer of creating, reading or changing one environment."""

    environment: Environment
    """The environment."""
    etag: Annotated[str | None, Field(exclude=True)] = None
    """In the client: the answer's header `ETag`."""


class _Settings(Body):
    """Fields that creating and changing share."""

    description: Text | None = None
    """Free text about it."""
    repository_id: GivenId | None = None
    """Repository that workspaces contain."""
    repository_set_id: GivenId | None = None
    """Repository set that workspaces contain."""
    system_prompt: Text | None = None
    """Instructions for agents."""
    personal_preferences: Text | None = None
    """Further instructions for agents, from the user."""
    push: PushPolicy | None = None
    """What agents may push; a source's setting comes before it."""
    co_author: CoAuthor | None = None
    """Co-author of what agents commit; a source's setting comes before it."""
    permission_policy: PermissionPolicy | None = None
    """What agents may do without asking; a source's setting comes before it."""
    permission_rules: Rules | None = None
    """Rules by which commands are allowed or rejected without asking, in place of those before. A
    source's rules apply as well."""
    cost_limit: CostLimit | None = None
    """Dollars that the agents of each replica may cost; 0 means no limit. A source's limit takes precedence."""


class CreateEnvironment(_Settings):
    """Body of `POST /v1/environments`; the name is unique in its scope (409)."""

    name: Name
    """Name, unique in its scope."""
    scope: Literal["org", "user"] = "org"
    """`org`: the organization's, changed by admins. `user`: the caller's own."""
    source_environment_id: GivenId | None = None
    """Shared environment to inherit from; only with scope `user`."""


class ChangeEnvironment(_Settings, Patch):
    """Body of `PATCH /v1/environments/{id}`; what is not given stays, null clears.

    Binding and system prompt of one with a source are locked, and so is the source itself (400).
    """

    name: Name = Field(default_factory=str)
    """Name, unique in its scope."""
    source_environment_id: GivenId | None = None
    """May be given as it is."""


class WarmPool(Record):
    """The pool of an environment. A saved warm hook bumps `generation`, which makes the rest stale."""

    id: Id
    """Unique id."""
    organization_id: Id
    """Organization it belongs to."""
    environment_id: Id
    """Environment whose workspaces it holds."""
    enabled: bool
    """Whether it is kept filled."""
    target_size: int
    """Number of workspaces that it should hold."""
    generation: int
    """Number that grows with each saved warm hook."""
    ready_count: int = 0
    """Number of workspaces that are ready."""
    stale_count: int = 0
    """Number of workspaces of an earlier generation."""
    warming_count: int = 0
    """Number of workspaces that are being prepared."""
    last_failure_at: Timestamp | None = None
    """When preparing one last failed."""
    last_failure_reason: str | None = None
    """Why it failed."""
    updated_at: Timestamp
    """When it was last changed."""


class WarmPoolAnswer(Record):
    """Answer of `PUT .../warm-pools`."""

    warm_pool: WarmPool
    """The pool."""


class ChangeWarmPool(Body):
    """Body of `PUT .../warm-pools`."""

    enabled: Switch
    """Whether to keep it filled."""


class PooledWorkspace(Record):
    """A workspace that waits in a pool; `state` is `warming`, `ready`, `stale` or `failed`."""

    id: Id
    """Unique id."""
    state: str
    """`warming`, `ready`, `stale` or `failed`."""
    generation: int
    """Generation of the pool that it was prepared for."""
    created_at: Timestamp
    """When it was created."""


class PooledWorkspaceList(Record):
    """Answer of `GET /v1/warm-pools/{id}/workspaces`, oldest first."""

    workspaces: list[PooledWorkspace]
    """Workspaces, oldest first."""
