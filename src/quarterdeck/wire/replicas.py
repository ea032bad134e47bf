"""Replicas, which the contract also calls workspaces (INTERFACE 3)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from quarterdeck.wire.base import Body, CamelRecord, GivenId, Id, Record, Switch, Timestamp, Whole
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.messages import Image, Model, ThinkingLevel
from quarterdeck.wire.states import WorkspaceStatus as WorkspaceStatus


class ReplicaRepository(Record):
    """A repository in the workspace."""

    id: Id
    name: str
    url: str


class PullRequest(Record):
    """A pull request opened from the workspace."""

    repository: str
    number: int
    url: str


class GitDiff(CamelRecord):
    """Changed lines of a repository against its base; `fullDiff` only when asked for."""

    added: int
    removed: int
    full_diff: str | None = None


class RepositoryStatus(Record):
    """Where a repository of the workspace stands."""

    repository: str
    branch: str | None = None
    default_branch: str | None = None
    pr_urls: list[str] = []
    start_hooks_completed: bool = False
    git_diff: dict[str, Any] | None = None


class AgentAvailability(Record):
    """Whether an agent can be used, and how it is authenticated."""

    available: bool
    auth_method: str | None = None


class ReplicaEnvironment(Record):
    """What the engine reports of its set-up (only with `include=environment`)."""

    engine_version: str | None = None
    files_uploaded: list[str] = []
    env_vars_set: list[str] = []
    skills_installed: list[str] = []
    coding_agents: dict[str, AgentAvailability] = {}
    hooks: Any = None
    last_updated_at: Timestamp | None = None
    isolation: str | None = None
    """How the sandbox is kept apart (own field): `bubblewrap`, or `none` with a note saying why."""
    isolation_note: str | None = None


class Replica(Record):
    """One workspace as a list shows it."""

    id: Id
    name: str
    status: str
    source: str = "api"
    created_at: Timestamp
    last_activity_at: Timestamp | None = None
    environment_id: Id | None = None
    repositories: list[ReplicaRepository] = []
    pull_requests: list[PullRequest] = []
    plan_ready: bool = False
    """A plan of one of its chats waits for the person's word (own field)."""


class ReplicaDetail(Replica):
    """One workspace with its chats and the state of its repositories."""

    coding_agent: str | None = None
    repository_statuses: list[RepositoryStatus] = []
    chats: list[Chat] = []
    waking: bool | None = None
    environment: ReplicaEnvironment | None = None
    error: str | None = None
    log_index: int | None = None
    """Index in the replica's event log that this record reflects (own field)."""
    model: str | None = None
    """The model that was asked for when it was made (own field); None: the agent's own choice."""
    size: str | None = None
    """What it may use of the machine (own field)."""
    lifecycle_policy: str | None = None
    """What becomes of it when its work is done (own field)."""
    auto_stop_minutes: int | None = None
    """After how long with nothing going on it is put to sleep (own field)."""


class ReplicaAnswer(Record):
    """Answer of creating or reading one replica."""

    replica: ReplicaDetail


class ReplicaList(Record):
    """A page of replicas, newest first."""

    replicas: list[Replica]
    total: int
    page: int
    limit: int
    total_pages: int


ReplicaSource = Literal["api", "dashboard", "chatapp", "tracker", "host-a", "host-b", "automation"]
"""What a replica can have been made from; a list can be asked for one of them."""

LifecyclePolicy = Literal[
    "default", "archive_when_done", "sleep_when_done", "delete_after_inactivity"
]


AUTO_STOP_MINUTES = 60
AUTO_STOP_LEAST = 3
AUTO_STOP_MOST = 1440


class ReplicaConfig(Body):
    """Finer settings of a replica. Those not known here are kept as they are."""

    model_config = ConfigDict(extra="allow")

    auto_stop_minutes: Annotated[Whole, Field(ge=AUTO_STOP_LEAST, le=AUTO_STOP_MOST)] | None = None
    """With nothing going on for so long, it is put to sleep."""


class CreateReplica(Body):
    """Body of `POST /v1/replica`. Without a message the workspace starts and waits."""

    name: Annotated[str, Field(pattern=r"^\S+$", max_length=200)]
    environment_id: GivenId
    message: str | None = None
    coding_agent: str | None = None
    model: Model | None = None
    images: list[Image] | None = None
    plan_mode: Switch | None = None
    goal_mode: Switch | None = None
    fast_mode: Switch | None = None
    thinking_level: ThinkingLevel | None = None
    lifecycle_policy: LifecyclePolicy | None = None
    config: ReplicaConfig | None = None
    size: Literal["small", "large"] | None = None
    webhook_url: str | None = None


class Waking(Record):
    """Answer of `POST .../wake`."""

    status: str = "waking"


class EngineHeartbeat(CamelRecord):
    """When the engine was last heard of."""

    last_seen_at: Timestamp
    age_ms: int
    fresh: bool
    stale_after_ms: int
    boot_time_ms: int | None = None
    uptime_seconds: int | None = None


class LastChatMessage(CamelRecord):
    """The newest message of any chat."""

    text: str
    provider: str
    at: Timestamp


class WorkspaceStatusAnswer(CamelRecord):
    """Answer of `GET /v1/workspaces/{id}/status`."""

    status: str
    last_checked: Timestamp
    error: str | None = None
    message: str | None = None
    engine_heartbeat: EngineHeartbeat | None = None
    last_chat_message: LastChatMessage | None = None
