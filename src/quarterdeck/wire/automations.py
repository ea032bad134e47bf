"""Automations: agents that run on schedules and events (INTERFACE 8; operations 12, 17, 19)."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from quarterdeck.wire.base import Body, GivenId, Id, Patch, Record, Switch, Timestamp, Whole
from quarterdeck.wire.messages import ThinkingLevel
from quarterdeck.wire.replicas import AUTO_STOP_LEAST, AUTO_STOP_MOST, LifecyclePolicy
from quarterdeck.wire.stored_text import NOT_BLANK, ONE_LINE, Line, Text
from quarterdeck.wire.triggers import Trigger, TriggerType

DEBOUNCE_MOST = 86_400
PAYLOAD_BYTES = 256 << 10
"""The largest body of a webhook, and of a payload given by hand."""

AutomationName = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE, NOT_BLANK]
Prompt = Annotated[str, Field(min_length=1, max_length=100_000), NOT_BLANK]
Model = Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
AgentName = Annotated[str, Field(min_length=1, max_length=100), ONE_LINE]
Debounce = Annotated[Whole, Field(ge=0, le=DEBOUNCE_MOST)]
AutoStop = Annotated[Whole, Field(ge=AUTO_STOP_LEAST, le=AUTO_STOP_MOST)]
Size = Literal["small", "large"]


class ExecutionStatus(StrEnum):
    """How far a run has come; the last two are its ends."""

    PENDING = "pending"
    CREATING = "creating"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class StoredTrigger(Record):
    """A trigger as it is answered; its type may be one that this version does not know."""

    type: str
    config: dict[str, Any] = {}


class Automation(Record):
    """One automation. `user_id` is set when it is personal, else it is the organization's."""

    id: Id
    organization_id: Id
    name: str
    description: str | None = None
    triggers: list[StoredTrigger] = []
    prompt: str
    debounce_seconds: int | None = None
    environment_id: Id
    enabled: bool
    disabled_reason: str | None = None
    """Why the service switched it off (own field)."""
    webhook_token: str | None = None
    """Set when it has a `custom` trigger: `POST /v1/automations/webhook/{token}`."""
    cron_expression: str | None = None
    cron_timezone: str | None = None
    cron_next_fire_at: Timestamp | None = None
    """The next moment of its schedule; null while it is switched off."""
    user_id: Id | None = None
    created_by: Id | None = None
    workspace_lifecycle_policy: str = "default"
    workspace_auto_stop_minutes: int | None = None
    workspace_size: str | None = None
    config: dict[str, Any] = {}
    agent_provider: str | None = None
    model: str | None = None
    thinking_level: str | None = None
    plan_mode: bool = False
    goal_mode: bool | None = None
    fast_mode: bool | None = None
    created_at: Timestamp
    updated_at: Timestamp


class AutomationAnswer(Record):
    """Answer of creating, reading or changing one automation."""

    automation: Automation


class AutomationList(Record):
    """A page of automations, newest first. The contract gives `totalPages` this case."""

    automations: list[Automation]
    total: int
    page: int
    limit: int
    total_pages: Annotated[int, Field(alias="totalPages")]


class AutomationConfig(Body):
    """Finer settings. Those not known here are kept as they are."""

    model_config = {**Body.model_config, "extra": "allow"}

    skip_while_running: Switch = False
    """A fire of the schedule while a run is in progress or waits makes no run (own field)."""
    report: Switch = False
    """A run without a pull request has a check of its own, for the agent's verdict (own field)."""


class _Settings(Body):
    """What creating and changing share."""

    description: Text | None = None
    debounce_seconds: Debounce | None = None
    workspace_auto_stop_minutes: AutoStop | None = None
    workspace_size: Size | None = None
    agent_provider: AgentName | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None
    goal_mode: Switch | None = None
    fast_mode: Switch | None = None


class CreateAutomation(_Settings):
    """Body of `POST /v1/automations`. At most one cron, and one trigger per event (400)."""

    name: AutomationName
    prompt: Prompt
    environment_id: GivenId
    triggers: list[Trigger] = []
    scope: Literal["org", "user"] = "org"
    enabled: Switch = True
    workspace_lifecycle_policy: LifecyclePolicy = "default"
    plan_mode: Switch = False
    config: AutomationConfig = Field(default_factory=AutomationConfig)


class ChangeAutomation(_Settings, Patch):
    """Body of `PATCH /v1/automations/{id}`; what is not given stays, null clears."""

    name: AutomationName = Field(default_factory=str)
    prompt: Prompt = Field(default_factory=str)
    environment_id: GivenId = Field(default_factory=lambda: Id(int=0))
    triggers: list[Trigger] = Field(default_factory=list[Trigger])
    enabled: Switch = Field(default_factory=bool)
    workspace_lifecycle_policy: LifecyclePolicy = Field(default_factory=lambda: "default")
    plan_mode: Switch = Field(default_factory=bool)
    config: AutomationConfig = Field(default_factory=AutomationConfig)


class PullRequestRef(Body):
    """The pull request a run is about."""

    repository: Annotated[str, Field(min_length=1, max_length=500), ONE_LINE]
    """A connected repository's name, or its full name at the host (`owner/name`)."""
    number: Annotated[Whole, Field(ge=1)]
    title: Line | None = None
    url: Line | None = None
    head_sha: Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = None
    head_ref: Line | None = None
    base_ref: Line | None = None
    author: Line | None = None
    fetch_ref: Line | None = None
    """The ref under which the host keeps its head, also one of a fork (own field)."""


class TriggerAutomation(Body):
    """Body of `POST /v1/automations/{id}/trigger`; all of it may be left out."""

    payload: Any = None
    pr: PullRequestRef | None = None


class Triggered(Record):
    """Answer of starting a run by hand; the workspace is null while the run waits for a place."""

    execution_id: Id
    workspace_id: Id | None = None


class Retried(Record):
    """Answer of operation 17; the workspace is null while the run waits for a place."""

    execution_id: Id
    workspace_id: Id | None = None


class Accepted(Record):
    """Answer of a webhook, 202."""

    accepted: bool = True


class CheckRun(Record):
    """The check of a run (own record). `status` is open, reported, superseded or abandoned."""

    id: str
    name: str
    status: str
    repository: str
    head_sha: str | None = None
    conclusion: str | None = None
    title: str | None = None
    summary: str | None = None
    opened_at: Timestamp
    closed_at: Timestamp | None = None


class Execution(Record):
    """One run of an automation."""

    id: Id
    automation_id: Id
    organization_id: Id
    workspace_id: Id | None = None
    triggered_at: Timestamp
    trigger_type: str | None = None
    """`cron`, `custom`, `host-a`, `host-b`, `manual` or `retry` (own field)."""
    trigger_event: str | None = None
    """The event of a host, such as `pull_request.opened` (own field)."""
    trigger_payload: Any = None
    status: str
    config: dict[str, Any] = {}
    """The automation's settings under which it ran."""
    error: str | None = None
    completed_at: Timestamp | None = None
    retry_of: Id | None = None
    check: CheckRun | None = None
    """Its check (own field); null when the run has none."""


class ExecutionAnswer(Record):
    """Answer of reading one run."""

    execution: Execution


class ExecutionList(Record):
    """A page of runs, newest first."""

    executions: list[Execution]
    total: int
    page: int
    limit: int
    total_pages: Annotated[int, Field(alias="totalPages")]


class ReportCheck(Body):
    """Body of operation 12."""

    token: Annotated[str, Field(min_length=1, max_length=500)]
    conclusion: Literal["success", "failure"]
    title: Annotated[str, Field(min_length=1, max_length=255), ONE_LINE]
    summary: Annotated[str, Field(max_length=65_535)] | None = None


class CheckReported(Record):
    """Answer of operation 12; false when a later run has superseded this one."""

    reported: bool
    name: str


class AutomationEventType(StrEnum):
    """Types of `GET /v1/automations/events` (own stream)."""

    AUTOMATION_CHANGED = "automation.changed"
    AUTOMATION_DELETED = "automation.deleted"
    EXECUTION_CHANGED = "execution.changed"


class AutomationEvent(Record):
    """The envelope; payloads `{automation}`, `{automation_id}` and `{execution}`."""

    id: str
    ts: Timestamp
    type: str
    payload: dict[str, Any] = {}


__all__ = [
    "PAYLOAD_BYTES",
    "Accepted",
    "Automation",
    "AutomationAnswer",
    "AutomationConfig",
    "AutomationEvent",
    "AutomationEventType",
    "AutomationList",
    "ChangeAutomation",
    "CheckReported",
    "CheckRun",
    "CreateAutomation",
    "Execution",
    "ExecutionAnswer",
    "ExecutionList",
    "ExecutionStatus",
    "PullRequestRef",
    "ReportCheck",
    "Retried",
    "StoredTrigger",
    "Trigger",
    "TriggerAutomation",
    "TriggerType",
    "Triggered",
]
