"""Replicas, which the contract also calls workspaces (docs/interface.md 3), and their webhook calls (9)."""

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictInt

from quarterdeck.wire.base import (
    INTEGRAL,
    NOT_BLANK,
    ONE_LINE,
    Body,
    CamelRecord,
    GivenId,
    Id,
    Record,
    Switch,
    Timestamp,
)
from quarterdeck.wire.chats import Chat, Image, Model, ThinkingLevel
from quarterdeck.wire.git_state import RepositoryStatus
from quarterdeck.wire.states import WorkspaceStatus as WorkspaceStatus

NAME_LIMIT = 200
"""Longest name of a replica, in characters."""

NAME_RULE = (
    "no spaces, quotes, backslashes or any of * ? [ ] ; & | < >, no empty part, . or .. between"
    " slashes, and is not an id: 8 or more hexadecimal digits alone, or a UUID"
)
_NOT_IN_NAMES = re.compile(r"""[\s*?\[\];&|<>"'`\\]""")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{8,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def is_replica_name(name: str) -> bool:
    """Return whether a person may give a new replica this name.

    Others mean something else in a shell, to git, or where an id can be given. The service takes any
    name without spaces (docs/interface.md 3).
    """
    return not (
        _NOT_IN_NAMES.search(name)
        or any(part in ("", ".", "..") for part in name.split("/"))
        or _HEXADECIMAL.fullmatch(name)
        or _UUID.fullmatch(name)
    )


def as_replica_name(text: str) -> str:
    """Return a name that a replica may have, as like a text as possible."""
    parts = (_NOT_IN_NAMES.sub("-", part).strip("-") for part in text.split("/"))
    name = "/".join(part for part in parts if part not in ("", ".", "..")) or "replica"
    return name if is_replica_name(name) else f"replica-{name}"


_Name = Annotated[str, Field(pattern=r"^\S+$", max_length=NAME_LIMIT)]


class ReplicaRepository(Record):
    """A repository in the workspace."""

    id: Id
    """Id of the connected repository."""
    name: str
    """Name, and directory in the workspace."""
    url: str
    """Where it was cloned from."""


class PullRequest(Record):
    """A pull request opened from the workspace."""

    repository: str
    """Name of the repository."""
    number: int
    """Number of the pull request."""
    url: str
    """Page of the pull request."""


class RepositoryDiff(Record):
    """Changed lines of a repository against its base."""

    added: int
    """Lines added."""
    removed: int
    """Lines removed."""
    full_diff: str | None = None
    """The whole diff as text; only with `include=diffs`."""


class AgentAvailability(Record):
    """Whether an agent can be used, and how it is authenticated."""

    available: bool
    """Whether a chat can use it now."""
    auth_method: str | None = None
    """How it is authenticated; null when it needs nothing."""


class ReplicaEnvironment(Record):
    """Set-up as the engine reports it (only with `include=environment`)."""

    engine_version: str | None = None
    """Version of the engine."""
    files_uploaded: list[str] = []
    """Paths of the files that the environment wrote."""
    env_vars_set: list[str] = []
    """Names of the variables that the environment set; never their values."""
    skills_installed: list[str] = []
    """Slugs of the installed skills."""
    coding_agents: dict[str, AgentAvailability] = {}
    """Agents in the workspace, by identifier."""
    hooks: Any = None
    """State of the hooks."""
    last_updated_at: Timestamp | None = None
    """When the set-up was last applied."""
    isolation: str | None = None
    """How the sandbox is kept apart (own field): `bubblewrap`, or `none` with a note saying why."""
    isolation_note: str | None = None
    """Why the sandbox is not isolated, and how to change that."""
    size_limited: bool | None = None
    """Whether the sandbox holds the replica to its size (own field); null where that is not known."""


class Replica(Record):
    """One workspace as a list shows it."""

    id: Id
    """Unique id."""
    name: str
    """Name, unique in the organization."""
    status: str
    """`active`, `preparing`, `sleeping`, `archived` or `error`."""
    source: str = "api"
    """Where it was created from."""
    created_at: Timestamp
    """When it was created."""
    last_activity_at: Timestamp | None = None
    """When something last happened in it."""
    environment_id: Id | None = None
    """Environment that it was created from."""
    repositories: list[ReplicaRepository] = []
    """Repositories in its workspace."""
    pull_requests: list[PullRequest] = []
    """Pull requests opened from its workspace."""
    plan_ready: bool = False
    """A plan of one of its chats waits for approval (own field)."""
    unreachable_since: Timestamp | None = None
    """Since when the service that has it, or the program that runs its container, does not answer (own field); None while it does. The record is from before."""
    unreachable_reason: str | None = None
    """Why it cannot be reached, when the program that runs its container does not answer (own field)."""
    asking: bool | None = None
    """One of its chats waits for an answer (own field); null where the service does not say."""
    working: bool | None = None
    """A turn runs in one of its chats (own field); null where the service does not say."""
    turn_failed: bool | None = None
    """Whether the newest turn of one of its chats failed (own field); null when none has ended since
    the newest message, and where the service does not say."""


class ReplicaDetail(Replica):
    """One workspace with its chats and the state of its repositories."""

    coding_agent: str | None = None
    """Agent for new chats; null for the default."""
    repository_statuses: list[RepositoryStatus] = []
    """State of each repository."""
    chats: list[Chat] = []
    """Its chats."""
    waking: bool | None = None
    """Whether it is being woken."""
    environment: ReplicaEnvironment | None = None
    """Its set-up; only with `include=environment`."""
    error: str | None = None
    """Why it is in the state `error`."""
    log_index: int | None = None
    """Index in the replica's event log that this record reflects (own field)."""
    model: str | None = None
    """The model that was requested when it was created (own field); null: the agent's default."""
    size: str | None = None
    """Limits of the machine's resources (own field)."""
    lifecycle_policy: str | None = None
    """What happens to it when its work is done (own field)."""
    auto_stop_minutes: int | None = None
    """After how long with nothing going on it is put to sleep (own field)."""


INCLUDES = ("environment", "diffs")
"""Values of `include` when one replica is read."""


class ReplicaAnswer(Record):
    """Answer of creating or reading one replica."""

    replica: ReplicaDetail
    """The replica."""


class ReplicaList(Record):
    """A page of replicas, newest first."""

    replicas: list[Replica]
    """Replicas on this page."""
    total: int
    """Number of entries on all pages together."""
    page: int
    """Number of this page, from 1."""
    limit: int
    """Most entries on a page."""
    total_pages: int
    """Number of pages."""


ReplicaSource = Literal["api", "dashboard", "chatapp", "tracker", "host-a", "host-b", "automation"]
"""Sources of replicas; a list can be filtered by one of them."""

LifecyclePolicy = Literal[
    "default", "archive_when_done", "sleep_when_done", "delete_after_inactivity"
]


Base = Annotated[str, Field(min_length=1, max_length=255), ONE_LINE, NOT_BLANK]
UNCOMMITTED_LIMIT = 32 << 20
"""Largest bundle of uncommitted changes, in bytes."""

AUTO_STOP_MINUTES = 60
AUTO_STOP_LEAST = 3
AUTO_STOP_MOST = 1440


class ReplicaConfig(Body):
    """Finer settings of a replica. Those not known here are kept as they are."""

    model_config = ConfigDict(extra="allow")

    auto_stop_minutes: (
        Annotated[StrictInt, Field(ge=AUTO_STOP_LEAST, le=AUTO_STOP_MOST), INTEGRAL] | None
    ) = None
    """With nothing going on for so long, it is put to sleep."""
    base: Base | None = None
    """Branch, tag or commit that the repository starts from; the default branch when it is left out
    (own field)."""
    pull_request: Annotated[StrictInt, Field(ge=1), INTEGRAL] | None = None
    """Number of the pull request that the repository starts from, instead of `base` (own field)."""
    uncommitted: GivenId | None = None
    """Uncommitted changes that the repository starts with, as they were uploaded; `base`, if it is
    given, has to contain the commit that they were made on (own field)."""
    repository: GivenId | None = None
    """The repository that these three are for; the environment's first when it is left out (own
    field)."""


class CreateReplica(Body):
    """Body of `POST /v1/replica`. Without a message the workspace starts and waits."""

    name: _Name
    """Name without spaces, unique in the organization."""
    environment_id: GivenId
    """Environment to create it from."""
    message: str | None = None
    """First message; without one the replica starts and waits."""
    coding_agent: str | None = None
    """Agent of the first chat."""
    model: Model | None = None
    """Model for its chats."""
    images: list[Image] | None = None
    """Images beside the first message."""
    plan_mode: Switch | None = None
    """Let the agent propose a plan first."""
    goal_mode: Switch | None = None
    """Set the first message as a goal."""
    fast_mode: Switch | None = None
    """Use the agent's fast mode."""
    thinking_level: ThinkingLevel | None = None
    """How much the model thinks."""
    lifecycle_policy: LifecyclePolicy | None = None
    """What happens to the replica when its work is done."""
    config: ReplicaConfig | None = None
    """Further settings."""
    size: Literal["small", "large"] | None = None
    """`small`: 2 CPUs, 8 GB. `large`: 4 CPUs, 16 GB."""
    webhook_url: str | None = None
    """Address that is called when something happens (see the webhooks of this document)."""


class ForkReplica(Body):
    """Body of `POST /v1/replica/{id}/fork`."""

    name: _Name | None = None
    """Name of the new replica; derived from that of the original when it is left out."""
    message: str | None = None
    """First message; without one the replica starts and waits."""


class UncommittedChanges(Record):
    """Uncommitted changes of a person, kept for one hour or until a replica starts with them."""

    id: Id
    """Unique id, for `config.uncommitted`."""
    base: str
    """Commit that the changes were made on."""
    size_bytes: int
    """Size of the upload."""


class UncommittedAnswer(Record):
    """Answer of `POST /v1/replica/uncommitted`."""

    uncommitted: UncommittedChanges
    """The changes."""


class Waking(Record):
    """Answer of `POST .../wake`."""

    status: str = "waking"
    """Always `waking`."""


class EngineHeartbeat(CamelRecord):
    """When the engine was last heard of."""

    last_seen_at: Timestamp
    """When the engine last reported."""
    age_ms: int
    """Milliseconds since then."""
    fresh: bool
    """Whether that is recent enough to count as alive."""
    stale_after_ms: int
    """Milliseconds until a report is no longer recent enough."""
    boot_time_ms: int | None = None
    """When the engine started, in milliseconds since 1970."""
    uptime_seconds: int | None = None
    """Seconds between its start and its last report."""


class LastChatMessage(CamelRecord):
    """The newest message of any chat."""

    text: str
    """Text of the message."""
    provider: str
    """Agent of its chat."""
    at: Timestamp
    """When it was sent."""


class WorkspaceStatusAnswer(CamelRecord):
    """Answer of `GET /v1/workspaces/{id}/status`."""

    status: str
    """`active`, `preparing`, `sleeping`, `archived` or `error`."""
    last_checked: Timestamp
    """When the state was read."""
    error: str | None = None
    """Why it is in the state `error`."""
    message: str | None = None
    """Its current step, for a person."""
    engine_heartbeat: EngineHeartbeat | None = None
    """When the engine last reported; left out when it never has."""
    last_chat_message: LastChatMessage | None = None
    """Newest message; left out when there is none."""
    unreachable_since: Timestamp | None = None
    """Since when the service that has the replica, or the program that runs its container, does not answer (own field)."""
    unreachable_reason: str | None = None
    """Why it cannot be reached, when the program that runs its container does not answer (own field)."""


class WebhookType(StrEnum):
    """Types of calls."""

    READY = "replica.ready"
    TURN_COMPLETED = "replica.turn_completed"
    ERROR = "replica.error"
    DELETED = "replica.deleted"


class WebhookCall(Record):
    """Body of a call. `type` names the shape of `data`."""

    id: Id
    """Id of the call; a repeated delivery has the same one."""
    type: WebhookType
    """Type of the call."""
    created_at: Timestamp
    """When it happened."""
    replica: Replica
    """The replica at that time."""
    data: Record
    """Details of the event."""


class NoWebhookData(Record):
    """Empty: nothing but the type is known of it."""


class TurnCompletedData(Record):
    """A turn ended."""

    chat_id: Id
    """Chat of the turn."""
    message_id: Id
    """Message that the turn answered."""
    is_complete: bool
    """False when the turn was interrupted or failed."""


class ReplicaErrorData(Record):
    """The replica changed to the state `error`."""

    error: str | None = None
    """Reason, for a person."""


WEBHOOK_DATA: dict[WebhookType, type[Record]] = {
    WebhookType.READY: NoWebhookData,
    WebhookType.TURN_COMPLETED: TurnCompletedData,
    WebhookType.ERROR: ReplicaErrorData,
    WebhookType.DELETED: NoWebhookData,
}
"""The model of `data` for each type."""
