"""Runs of automations, their checks and what was skipped."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from quarterdeck.wire.base import (
    INTEGRAL,
    ONE_LINE,
    Body,
    Id,
    Line,
    Record,
    Timestamp,
)


class ExecutionStatus(StrEnum):
    """How far a run has come; the last two are its ends."""

    PENDING = "pending"
    CREATING = "creating"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class ExecutionReason(StrEnum):
    """Why a run has failed, where that is not its own failure."""

    TIMEOUT = "timeout"
    """The run took longer than `max_minutes`."""
    UNANSWERED = "unanswered"
    """Its agent's question was not answered within the stop time."""
    DELETED = "deleted"
    """Its replica or chat was deleted."""
    INTERRUPTED = "interrupted"
    """A person interrupted its turn, or put its replica to rest."""
    CANCELED = "canceled"
    """A person canceled it, or removed its message from the queue."""
    SUPERSEDED = "superseded"
    """A newer push to its pull request replaced it."""
    DISABLED = "disabled"
    """Its automation was switched off before it began."""
    EXPIRED = "expired"
    """Nobody approved it within `retention_days`."""


UNCOUNTED_REASONS = frozenset(
    (
        ExecutionReason.INTERRUPTED,
        ExecutionReason.CANCELED,
        ExecutionReason.SUPERSEDED,
        ExecutionReason.DISABLED,
        ExecutionReason.EXPIRED,
    )
)
"""A run that ended for one of these does not count as a failure of its automation."""


class SkipReason(StrEnum):
    """Why a scheduled time or an event started no run."""

    MISSED = "missed"
    """No service ran, and the moment was over an hour old, or a later one was made up for."""
    RUNNING = "running"
    """The previous run had not ended, and `skip_while_running` is set."""
    CONCURRENCY = "concurrency"
    """A run of the schedule already waited for its turn under `concurrency`."""
    QUOTA = "quota"
    """As many runs of the owner waited as are allowed. Events are skipped for this reason, too."""


class PullRequestRef(Body):
    """The pull request a run is about."""

    repository: Annotated[str, Field(min_length=1, max_length=500), ONE_LINE]
    """A connected repository's name, or its full name at the host (`owner/name`)."""
    number: Annotated[StrictInt, Field(ge=1), INTEGRAL]
    """Number of the pull request."""
    title: Line | None = None
    """Title of the pull request."""
    url: Line | None = None
    """Page of the pull request."""
    head_sha: Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = None
    """Commit at its head, in full."""
    head_ref: Line | None = None
    """Branch that it is to be merged from."""
    base_ref: Line | None = None
    """Branch that it is to be merged into."""
    author: Line | None = None
    """Name of its author at the host."""
    fetch_ref: Line | None = None
    """The ref under which the host keeps its head, also one of a fork (own field)."""


class TriggerAutomation(Body):
    """Body of `POST /v1/automations/{id}/trigger`; all of it may be left out."""

    payload: Any = None
    """Any JSON; it is shown to the agent as the payload of the trigger."""
    pr: PullRequestRef | None = None
    """Pull request that the run is about."""


class Triggered(Record):
    """Answer of starting a run by hand; the workspace is null while the run waits for a place."""

    execution_id: Id
    """Id of the run."""
    workspace_id: Id | None = None
    """Workspace of the run; null until it has one."""


class Retried(Record):
    """Answer of operation 17; the workspace is null while the run waits for a place."""

    execution_id: Id
    """Id of the new run."""
    workspace_id: Id | None = None
    """Workspace of the new run; null until it has one."""


class Accepted(Record):
    """Answer of a webhook, 202."""

    accepted: bool = True
    """Always true."""


class CheckRun(Record):
    """The check of a run (own record). `status` is open, reported, superseded or abandoned."""

    id: str
    """Id for the report."""
    name: str
    """Name that the host shows."""
    status: str
    """`open`, `reported`, `superseded` or `abandoned`."""
    repository: str
    """Repository that the commit belongs to."""
    head_sha: str | None = None
    """Commit that is checked."""
    conclusion: str | None = None
    """`success` or `failure`; null until it is reported."""
    title: str | None = None
    """One line about the verdict."""
    summary: str | None = None
    """Longer text about the verdict, as Markdown."""
    opened_at: Timestamp
    """When it was opened."""
    closed_at: Timestamp | None = None
    """When it was reported or given up."""


class Published(Record):
    """Result of publishing the commits of one repository after a successful run."""

    repository: str | None = None
    """Name of the repository; null when none could be read."""
    branch: str | None = None
    """Branch that was pushed."""
    commit: str | None = None
    """Its newest commit."""
    number: int | None = None
    """Number of the pull request."""
    url: str | None = None
    """Address of the pull request."""
    error: str | None = None
    """Why it could not be done."""
    passing: bool = False
    """Whether that may be over when it is tried again."""
    tries: int = 1
    """How often it was tried."""


class Execution(Record):
    """One run of an automation."""

    id: Id
    """Unique id."""
    automation_id: Id
    """Automation that it is a run of."""
    organization_id: Id
    """Organization it belongs to."""
    workspace_id: Id | None = None
    """Workspace it runs in; null until it has one."""
    triggered_at: Timestamp
    """When it was triggered."""
    trigger_type: str | None = None
    """`cron`, `custom`, `host-a`, `host-b`, `manual` or `retry` (own field)."""
    trigger_event: str | None = None
    """The event of a host, such as `pull_request.opened` (own field)."""
    trigger_payload: Any = None
    """JSON that the trigger came with."""
    head_sha: str | None = None
    """Commit at the head of its pull request when it was triggered, as far as known; an approval is
    for this commit (own field)."""
    status: str
    """`pending`, `creating`, `running`, `completed` or `failed`."""
    config: dict[str, Any] = {}
    """The automation's settings under which it ran."""
    error: str | None = None
    """Why it failed."""
    reason: str | None = None
    """Why it failed, where that is not the run's own failure: `timeout`, `unanswered`, `deleted`,
    `interrupted`, `canceled`, `superseded`, `disabled`, `expired`. The last five do not count
    towards the failures that switch an automation off (own field)."""
    awaiting_approval: bool = False
    """`pending` until it is approved: it is for a pull request from a fork whose author
    is not trusted (own field)."""
    approved_by: Id | None = None
    """The user who approved it; null when nobody had to, or it was done with an organization's key
    (own field)."""
    approved_at: Timestamp | None = None
    """When it was approved (own field)."""
    started_at: Timestamp | None = None
    """When it was given its replica; `max_minutes` counts from then (own field)."""
    completed_at: Timestamp | None = None
    """When it ended."""
    retry_of: Id | None = None
    """Failed run that this one repeats."""
    published: list[Published] = []
    """Results of `on_success` (own field), by repository; empty before, and without commits."""
    check: CheckRun | None = None
    """Its check (own field); null when the run has none."""


class ExecutionAnswer(Record):
    """Answer of reading one run."""

    execution: Execution
    """The run."""


class SkippedMoments(Record):
    """Consecutive scheduled times or events that started no run (own record)."""

    id: Id
    """Unique id."""
    automation_id: Id
    """Automation of the schedule."""
    reason: str
    """`missed`, `running`, `concurrency` or `quota`."""
    count: int
    """How many they were; those missed in one outage are counted to 100."""
    first_at: Timestamp
    """The first of them."""
    last_at: Timestamp
    """The last of them."""


class ExecutionList(Record):
    """A page of runs, newest first."""

    executions: list[Execution]
    """Runs on this page."""
    skipped: list[SkippedMoments] = []
    """Scheduled times and events that started no run, from the time that the page covers, newest
    first; 100 at most (own field)."""
    total: int
    """Number of entries on all pages together."""
    page: int
    """Number of this page, from 1."""
    limit: int
    """Most entries on a page."""
    total_pages: Annotated[int, Field(alias="totalPages")]
    """Number of pages."""


class ReportCheck(Body):
    """Body of operation 12."""

    token: Annotated[str, Field(min_length=1, max_length=500)]
    """Token of the check, from the prompt of the run."""
    conclusion: Literal["success", "failure"]
    """Verdict."""
    title: Annotated[str, Field(min_length=1, max_length=255), ONE_LINE]
    """One line about the verdict."""
    summary: Annotated[str, Field(max_length=65_535)] | None = None
    """Longer text about the verdict, as Markdown."""


class CheckReported(Record):
    """Answer of operation 12; false when a later run has superseded this one."""

    reported: bool
    """False when a later run has replaced this one; nothing was reported then."""
    name: str
    """Name of the check."""
