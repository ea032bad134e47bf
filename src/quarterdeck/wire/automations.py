"""Automations: agents that run on schedules and events (docs/interface.md 8; operations 12, 17, 19)."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from quarterdeck.wire.automation_runs import (
    Accepted,
    CheckReported,
    CheckRun,
    Execution,
    ExecutionAnswer,
    ExecutionList,
    ExecutionReason,
    ExecutionStatus,
    PullRequestRef,
    ReportCheck,
    Retried,
    SkippedMoments,
    SkipReason,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.base import (
    INTEGRAL,
    NOT_BLANK,
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
from quarterdeck.wire.chats import ThinkingLevel
from quarterdeck.wire.events import AutomationEventType
from quarterdeck.wire.permissions import PushPolicy
from quarterdeck.wire.replicas import AUTO_STOP_LEAST, AUTO_STOP_MOST, Base, LifecyclePolicy
from quarterdeck.wire.states import WorkspaceStatus
from quarterdeck.wire.triggers import Trigger, TriggerType

DEBOUNCE_MOST = 86_400
DEBOUNCE_TIMES = 10
"""A burst that does not end starts its run after so many times `debounce_seconds`, unless
`debounce_max_seconds` says when."""
MINUTES_MOST = 10_080
CONCURRENCY_MOST = 100
RETENTION_DAYS = 90
RETENTION_DAYS_MOST = 3_650
WEBHOOK_SECRET_LEAST = 16
WEBHOOK_SECRET_MOST = 200
PAYLOAD_BYTES = 256 << 10
"""The largest body of a webhook, and of a payload given by hand."""
SIGNATURE_HEADER = "X-Signature-256"
"""Carries `sha256=<hex HMAC of the raw body>` in calls of a webhook that has a secret."""

AutomationName = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE, NOT_BLANK]
Prompt = Annotated[str, Field(min_length=1, max_length=100_000), NOT_BLANK]
Model = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
AgentName = Annotated[str, Field(min_length=1, max_length=100), ONE_LINE]
Debounce = Annotated[StrictInt, Field(ge=0, le=DEBOUNCE_MOST), INTEGRAL]
DebounceMax = Annotated[StrictInt, Field(ge=1, le=DEBOUNCE_MOST * DEBOUNCE_TIMES), INTEGRAL]
AutoStop = Annotated[StrictInt, Field(ge=AUTO_STOP_LEAST, le=AUTO_STOP_MOST), INTEGRAL]
Minutes = Annotated[StrictInt, Field(ge=1, le=MINUTES_MOST), INTEGRAL]
Concurrency = Annotated[StrictInt, Field(ge=1, le=CONCURRENCY_MOST), INTEGRAL]
RetentionDays = Annotated[StrictInt, Field(ge=1, le=RETENTION_DAYS_MOST), INTEGRAL]
WebhookSecret = Annotated[
    str, Field(min_length=WEBHOOK_SECRET_LEAST, max_length=WEBHOOK_SECRET_MOST), ONE_LINE
]
Size = Literal["small", "large"]
Trust = Literal["members", "approved", "all"]
"""Whose pull requests from forks start runs without approval: those of people with a part in the
repository; theirs, and of authors of whom a run was approved before; everybody's."""
OnNewEvent = Literal["cancel", "queue"]
"""What a new push to a pull request does to an earlier run for it: ends it, or waits for its end."""


class StoredTrigger(Record):
    """A trigger as it is answered; its type may be one that this version does not know."""

    type: str
    """Type, as it was given."""
    config: dict[str, Any] = {}
    """Settings of the trigger; they depend on the type."""


class Automation(Record):
    """One automation. `user_id` is set when it is personal, else it is the organization's."""

    id: Id
    """Unique id."""
    organization_id: Id
    """Organization it belongs to."""
    name: str
    """Name to show."""
    description: str | None = None
    """Free text about it."""
    triggers: list[StoredTrigger] = []
    """Triggers."""
    prompt: str
    """Message that each run sends to its agent."""
    debounce_seconds: int | None = None
    """Seconds without another event before a run starts; events in between update the pending
    run."""
    environment_id: Id
    """Environment of its workspaces."""
    enabled: bool
    """Whether triggers start runs."""
    disabled_reason: str | None = None
    """Why the service switched it off (own field)."""
    webhook_token: str | None = None
    """Set when it has a `custom` trigger: `POST /v1/automations/webhook/{token}`."""
    cron_expression: str | None = None
    """Schedule of its `cron` trigger: five fields."""
    cron_timezone: str | None = None
    """IANA time zone of the schedule."""
    cron_next_fire_at: Timestamp | None = None
    """The next scheduled time; null while it is switched off."""
    user_id: Id | None = None
    """User that it belongs to; null when it is the organization's."""
    created_by: Id | None = None
    """User that created it."""
    workspace_lifecycle_policy: str = "default"
    """What happens to a workspace when its work is done."""
    workspace_auto_stop_minutes: int | None = None
    """Idle minutes until a workspace sleeps; null for the default."""
    workspace_size: str | None = None
    """Size of its workspaces, `small` or `large`; null for the default."""
    trust: str = "members"
    """Whose pull requests from forks start runs without approval: `members`, `approved`, `all` (own
    field)."""
    on_new_event: str = "cancel"
    """What a new push does to an earlier run for the pull request: `cancel`, `queue` (own field)."""
    debounce_max_seconds: int | None = None
    """After so long a burst of events starts its run even if it goes on; null: ten times
    `debounce_seconds` (own field)."""
    max_minutes: int | None = None
    """A run that takes longer is ended, with the reason `timeout`; null: no limit (own field)."""
    concurrency: int | None = None
    """So many of its runs may be under way at once, others wait; null: no limit (own field)."""
    retention_days: int = RETENTION_DAYS
    """Runs that ended longer ago are removed (own field)."""
    webhook_signed: bool = False
    """Whether calls of its webhook need the header `X-Signature-256` (own field)."""
    webhook_url: str | None = None
    """Where its webhook is called; null without a `custom` trigger, and while the service listens on
    unix sockets only (own field)."""
    notices: list[str] = []
    """Reasons why its triggers cannot start runs here: no address that can be called from outside, a
    host that is not set up (own field)."""
    config: dict[str, Any] = {}
    """Further settings (see AutomationConfig)."""
    agent_provider: str | None = None
    """Agent that runs use; null for the default."""
    model: str | None = None
    """Model that runs use; null for the agent's default."""
    thinking_level: str | None = None
    """How much the model thinks; null for the agent's default."""
    plan_mode: bool = False
    """Whether the agent makes a plan first."""
    goal_mode: bool | None = None
    """Whether the prompt is set as a goal."""
    fast_mode: bool | None = None
    """Whether the agent uses its fast mode."""
    created_at: Timestamp
    """When it was created."""
    updated_at: Timestamp
    """When it was last changed."""


class AutomationAnswer(Record):
    """Answer of creating, reading or changing one automation."""

    automation: Automation
    """The automation."""
    etag: Annotated[str | None, Field(exclude=True)] = None
    """In the client: the answer's header `ETag`."""


class AutomationList(Record):
    """A page of automations, newest first. The contract gives `totalPages` this case."""

    automations: list[Automation]
    """Automations on this page."""
    total: int
    """Number of entries on all pages together."""
    page: int
    """Number of this page, from 1."""
    limit: int
    """Most entries on a page."""
    total_pages: Annotated[int, Field(alias="totalPages")]
    """Number of pages."""


class OnSuccess(StrEnum):
    """How the commits of a successful run are published, with the person's credentials."""

    NONE = "none"
    """They stay in its replica."""
    PUSH = "push"
    """The branch is pushed."""
    PULL_REQUEST = "pull_request"
    """The branch is pushed, and a pull request opened."""
    DRAFT_PULL_REQUEST = "draft_pull_request"
    """The same, as a draft."""


class AutomationConfig(Body):
    """Finer settings. Those not known here are kept as they are."""

    model_config = {**Body.model_config, "extra": "allow"}

    skip_while_running: Switch = False
    """A fire of the schedule while a run is in progress or waits makes no run (own field)."""
    report: Switch = False
    """A run without a pull request has a check of its own, for the agent's verdict (own field)."""
    on_success: OnSuccess | None = None
    """How the commits of a successful run are published; null: nothing (own field)."""
    push: PushPolicy | None = None
    """Push policy of its runs; null: that of their environment, else their own branch
    (own field)."""
    base: Base | None = None
    """Branch, tag or commit that the first repository of a run starts from; the default branch when
    it is left out. A run for a pull request starts from that instead (own field)."""


class _Settings(Body):
    """Fields that creating and changing share."""

    description: Text | None = None
    """Free text about it."""
    debounce_seconds: Debounce | None = None
    """Seconds without another event before a run starts; events in between update the pending
    run."""
    debounce_max_seconds: DebounceMax | None = None
    """Most seconds that events can put off a run; null: ten times `debounce_seconds` (own
    field)."""
    max_minutes: Minutes | None = None
    """Minutes after which a run is ended; null: no limit (own field)."""
    concurrency: Concurrency | None = None
    """Most runs at the same time, others wait; null: no limit (own field)."""
    webhook_secret: WebhookSecret | None = Field(default=None, repr=False)
    """With it, calls of the webhook need `X-Signature-256: sha256=<hex HMAC of the raw body>`. Never
    shown again; null clears it (own field)."""
    workspace_auto_stop_minutes: AutoStop | None = None
    """Idle minutes until a workspace sleeps."""
    workspace_size: Size | None = None
    """Size of its workspaces."""
    agent_provider: AgentName | None = None
    """Agent that runs use."""
    model: Model | None = None
    """Model that runs use."""
    thinking_level: ThinkingLevel | None = None
    """How much the model thinks."""
    goal_mode: Switch | None = None
    """Set the prompt as a goal."""
    fast_mode: Switch | None = None
    """Use the agent's fast mode."""


class CreateAutomation(_Settings):
    """Body of `POST /v1/automations`. At most one cron, and one trigger per event (400)."""

    name: AutomationName
    """Name to show."""
    prompt: Prompt
    """Message that each run sends to its agent."""
    environment_id: GivenId
    """Environment of its workspaces."""
    triggers: list[Trigger] = []
    """Triggers: at most one cron, and one for each event."""
    scope: Literal["org", "user"] = "org"
    """`org`: the organization's, changed by admins. `user`: the caller's own."""
    enabled: Switch = True
    """Whether triggers start runs."""
    workspace_lifecycle_policy: LifecyclePolicy = "default"
    """What happens to a workspace when its work is done."""
    plan_mode: Switch = False
    """Propose a plan first."""
    trust: Trust = "members"
    """Whose pull requests from forks start runs without approval (own field)."""
    on_new_event: OnNewEvent = "cancel"
    """What a new push does to an earlier run for the pull request (own field)."""
    retention_days: RetentionDays = RETENTION_DAYS
    """Days after which runs that have ended are removed (own field)."""
    config: AutomationConfig = Field(default_factory=AutomationConfig)
    """Further settings."""


class ChangeAutomation(_Settings, Patch):
    """Body of `PATCH /v1/automations/{id}`; what is not given stays, null clears."""

    name: AutomationName = Field(default_factory=str)
    """Name to show."""
    prompt: Prompt = Field(default_factory=str)
    """Message that each run sends to its agent."""
    environment_id: GivenId = Field(default_factory=lambda: Id(int=0))
    """Environment of its workspaces."""
    triggers: list[Trigger] = Field(default_factory=list[Trigger])
    """Triggers; replaces the whole list."""
    enabled: Switch = Field(default_factory=bool)
    """Whether triggers start runs."""
    workspace_lifecycle_policy: LifecyclePolicy = Field(default_factory=lambda: "default")
    """What happens to a workspace when its work is done."""
    plan_mode: Switch = Field(default_factory=bool)
    """Propose a plan first."""
    trust: Trust = Field(default_factory=lambda: "members")
    """Whose pull requests from forks start runs without approval (own field)."""
    on_new_event: OnNewEvent = Field(default_factory=lambda: "cancel")
    """What a new push does to an earlier run for the pull request (own field)."""
    retention_days: RetentionDays = Field(default_factory=lambda: RETENTION_DAYS)
    """Days after which runs that have ended are removed (own field)."""
    config: AutomationConfig = Field(default_factory=AutomationConfig)
    """Further settings; replaces all of them."""


class AutomationEvent(Record):
    """One message of `GET /v1/automations/events`; `type` names the shape of `payload`."""

    id: str
    """Unique id of the event."""
    ts: Timestamp
    """When it happened."""
    type: str
    """Type of the event."""
    payload: dict[str, Any] = {}
    """Details, by type."""


class AutomationDeleted(Record):
    """Payload of `automation.deleted`."""

    automation_id: Id
    """The automation that was deleted."""


class ReplicaStatusChanged(Record):
    """Payload of `replica.changed`: a replica was created, woken, archived or deleted."""

    replica_id: Id
    """The replica."""
    status: WorkspaceStatus | None
    """Its new state; null when it was deleted."""


AUTOMATION_PAYLOADS: dict[AutomationEventType, type[Record]] = {
    AutomationEventType.AUTOMATION_CHANGED: AutomationAnswer,
    AutomationEventType.AUTOMATION_DELETED: AutomationDeleted,
    AutomationEventType.EXECUTION_CHANGED: ExecutionAnswer,
    AutomationEventType.REPLICA_CHANGED: ReplicaStatusChanged,
}
"""The payload model of each type."""


__all__ = [
    "PAYLOAD_BYTES",
    "Accepted",
    "Automation",
    "AutomationAnswer",
    "AutomationConfig",
    "AutomationEvent",
    "AutomationList",
    "ChangeAutomation",
    "CheckReported",
    "CheckRun",
    "CreateAutomation",
    "Execution",
    "ExecutionAnswer",
    "ExecutionList",
    "ExecutionReason",
    "ExecutionStatus",
    "PullRequestRef",
    "ReportCheck",
    "Retried",
    "SkipReason",
    "SkippedMoments",
    "StoredTrigger",
    "Trigger",
    "TriggerAutomation",
    "TriggerType",
    "Triggered",
]
