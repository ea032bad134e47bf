"""The facts of an automation, as lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from textual.binding import BindingType

from quarterdeck.store.automation_draft import coming_of, webhook_call, webhook_path, webhook_url
from quarterdeck.store.automation_state import AutomationState, Standing, under_way
from quarterdeck.transcript.text import clean, one_line
from quarterdeck.tui.actions import KeyContext, keyed, prompt_bindings
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.pages import WrappedPage
from quarterdeck.tui.kit.rows import ROLES, ColumnCell, columns
from quarterdeck.tui.kit.spans import Emphasis, Line, Span, TextRole, wrap, wrap_hard
from quarterdeck.tui.kit.text_view import TextView
from quarterdeck.tui.text import soon_or_day, when
from quarterdeck.tui.themes import NEEDS_YOU, Mark
from quarterdeck.wire.automation_runs import (
    Execution,
    ExecutionReason,
    ExecutionStatus,
    SkippedMoments,
    SkipReason,
)
from quarterdeck.wire.automations import RETENTION_DAYS, Automation, OnSuccess, StoredTrigger
from quarterdeck.wire.permissions import PushPolicy


@dataclass(frozen=True)
class Fact:
    """A text that may be wrapped. `label` precedes it, in a separate column.

    `color` is one of `ROLES`. `hard` texts keep their spaces: code, and text from outside.
    """

    text: str = ""
    color: str = ""
    label: str = ""
    bold: bool = False
    hard: bool = False


STANDINGS = {
    Standing.SWITCHED_OFF: Mark("✗", "switched off", "error"),
    Standing.FAILING: Mark("✗", "failing", "error"),
    Standing.APPROVAL: Mark("◌", "waits for approval", NEEDS_YOU),
    Standing.RUNNING: Mark("●", "running", "primary"),
    Standing.DUE: Mark("○", "scheduled", "secondary"),
    Standing.WAITING: Mark("○", "waiting", "muted"),
    Standing.OFF: Mark("▪", "off", "muted"),
}
RUNS = {
    ExecutionStatus.PENDING: Mark("◌", "pending", "secondary"),
    ExecutionStatus.CREATING: Mark("◌", "creating", "secondary"),
    ExecutionStatus.RUNNING: Mark("●", "running", "primary"),
    ExecutionStatus.COMPLETED: Mark("✓", "completed", "success"),
    ExecutionStatus.FAILED: Mark("✗", "failed", "error"),
}
REASONS = {
    ExecutionReason.TIMEOUT: Mark("✗", "timeout", "error"),
    ExecutionReason.UNANSWERED: Mark("✗", "unanswered", "error"),
    ExecutionReason.DELETED: Mark("✗", "deleted", "error"),
    ExecutionReason.INTERRUPTED: Mark("○", "interrupted", "muted"),
    ExecutionReason.CANCELED: Mark("○", "canceled", "muted"),
    ExecutionReason.SUPERSEDED: Mark("○", "superseded", "muted"),
    ExecutionReason.DISABLED: Mark("○", "disabled", "muted"),
    ExecutionReason.EXPIRED: Mark("○", "expired", "muted"),
}
"""Runs that failed for a special reason look different from others."""
ON_SUCCESS = {
    OnSuccess.PUSH: "push the branch",
    OnSuccess.PULL_REQUEST: "open a pull request",
    OnSuccess.DRAFT_PULL_REQUEST: "open a draft pull request",
}
PUSH = {
    PushPolicy.ASK: "ask in the chat",
    PushPolicy.OWN_BRANCH: "own branch",
    PushPolicy.ANY: "any branch",
    PushPolicy.NEVER: "never",
}
APPROVAL = Mark("◌", "approval", NEEDS_YOU)
SKIPPED = {
    SkipReason.MISSED: "the service was not running",
    SkipReason.RUNNING: "the previous run had not ended",
    SkipReason.CONCURRENCY: "a run of the schedule already waited",
    SkipReason.QUOTA: "too many runs waited",
}
VERDICTS = {
    "success": Mark("✓", "success", "success"),
    "failure": Mark("✗", "failure", "error"),
    "neutral": Mark("○", "no verdict", "muted"),
    "cancelled": Mark("○", "canceled", "muted"),
}


def run_mark(run: Execution) -> Mark:
    """Return the status of a run; a status unknown to this version is shown as it is."""
    if run.awaiting_approval:
        return APPROVAL
    why = next((mark for reason, mark in REASONS.items() if reason == run.reason), None)
    if why is not None:
        return why
    known = next((mark for status, mark in RUNS.items() if status == run.status), None)
    return known or Mark("?", run.status, "muted")


def verdict_mark(run: Execution) -> Mark | None:
    """Return the result of its check: the conclusion, else the status."""
    if run.check is None:
        return None
    if run.check.conclusion is None:
        return Mark("◌", f"check {run.check.status}", "muted")
    known = VERDICTS.get(run.check.conclusion)
    return known or Mark("?", run.check.conclusion, "muted")


def took(run: Execution) -> str:
    """Return the duration of a run that has ended."""
    if run.completed_at is None:
        return ""
    seconds = max(0, int((run.completed_at - run.triggered_at).total_seconds()))
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{seconds % 60:02}s" if minutes else f"{seconds}s"


def both_clocks(moment: datetime, zone: str | None) -> str:
    """Return a time in the zone of a schedule, and in local time."""
    here = moment.astimezone()
    try:
        there = moment.astimezone(ZoneInfo(zone or "UTC"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{here:%a %d %b %H:%M %Z}"
    scheduled = f"{there:%a %d %b %H:%M} {zone or 'UTC'}"
    if there.utcoffset() == here.utcoffset():
        return scheduled
    day = "" if there.date() == here.date() else f"{here:%a} "
    return f"{scheduled} · {day}{here:%H:%M} here"


def next_words(state: AutomationState, now: datetime) -> str:
    """Return what comes next: a time, or what it waits for."""
    if not state.record.enabled:
        return "off"
    if state.next_at is not None:
        return soon_or_day(state.next_at, now)
    types = {trigger.type for trigger in state.record.triggers}
    if types & {"host-a", "host-b"}:
        return "on events"
    return "webhook" if "custom" in types else "by hand"


def last_words(state: AutomationState, now: datetime) -> str:
    """Return the last run and its verdict."""
    run = state.newest
    if run is None:
        return "not run yet"
    if run.awaiting_approval:
        return f"waits for approval since {when(run.triggered_at, now)}"
    if under_way(run):
        return f"{run_mark(run).word} since {when(run.triggered_at, now)}"
    verdict = verdict_mark(run)
    check = f", check {verdict.sign}" if verdict and verdict.color != "muted" else ""
    return f"{run_mark(run).sign} {when(run.triggered_at, now)}{check}"


def trigger_words(trigger: StoredTrigger, repositories: Mapping[UUID, str]) -> str:
    """Return what triggers it, with its filters."""
    config = trigger.config
    match trigger.type:
        case "cron":
            return f"{config.get('schedule')}  {config.get('timezone') or 'UTC'}"
        case "custom":
            return "a call of its webhook"
        case "host-a" | "host-b":
            return ", ".join([str(config.get("event")), *_filters(config, repositories)])
        case other:
            return f"{other} (stored; nothing fires it here)"


def _filters(config: Mapping[str, Any], repositories: Mapping[UUID, str]) -> list[str]:
    found: list[str] = []
    ids = config.get("repository_ids")
    if isinstance(ids, list):
        names = {str(id): name for id, name in repositories.items()}
        shown = [names.get(str(id), str(id)[:8]) for id in cast("list[object]", ids)]
        found.append(f"of {', '.join(shown)}" if shown else "of no repository")
    if config.get("group_pr_events"):
        found.append("grouped")
    if config.get("excluded_actors"):
        found.append(f"not by {', '.join(map(str, config['excluded_actors']))}")
    if config.get("check") is False:
        found.append("no check")
    return found


def skipped_words(skipped: SkippedMoments) -> str:
    """Return why scheduled times started no run, and how many there were."""
    why = next((words for reason, words in SKIPPED.items() if reason == skipped.reason), None)
    many = f"{skipped.count} moments: " if skipped.count > 1 else ""
    return many + (why or skipped.reason)


def run_trigger(run: Execution) -> str:
    """Return what triggered a run."""
    kind = "webhook" if run.trigger_type == "custom" else run.trigger_type
    return " ".join(filter(None, (kind, run.trigger_event))) or "-"


MASK = "••••••••"
TRUST = {
    "members": "members only; other forks wait for approval",
    "approved": "members and approved authors; other forks wait",
    "all": "everybody, also from forks",
}


@dataclass(frozen=True)
class NameLookup:
    """Names by id; unknown ids are shown as they are."""

    environments: dict[UUID, str] = field(default_factory=dict[UUID, str])
    repositories: dict[UUID, str] = field(default_factory=dict[UUID, str])
    endpoint: str = ""
    """Where the cockpit connects to the service."""

    def environment(self, id: UUID) -> str:
        return self.environments.get(id, str(id)[:8])


def facts_of(
    state: AutomationState, names: NameLookup, now: datetime, *, revealed: bool = False
) -> Iterator[Fact]:
    """Yield everything: status, triggers, coming runs, settings, prompt."""
    record = state.record
    yield Fact(state.name, bold=True)
    yield Fact(_status_text(state, now), STANDINGS[state.standing].color)
    if state.problem:
        yield Fact(state.problem, "error")
    if record.description:
        yield Fact(record.description, "muted")
    yield Fact()
    yield from _triggers(record, names, revealed)
    yield from _coming(record, now)
    yield Fact()
    yield from _settings(record, names)
    yield Fact()
    yield Fact("Prompt", "primary", bold=True)
    for line in clean(record.prompt).splitlines():
        yield Fact(line, hard=True)


def _status_text(state: AutomationState, now: datetime) -> str:
    mark, last = STANDINGS[state.standing], last_words(state, now)
    if state.standing in {Standing.RUNNING, Standing.APPROVAL}:
        return f"{mark.sign} {last}"
    return f"{mark.sign} {mark.word} · {'last ' if state.newest else ''}{last}"


def _triggers(record: Automation, names: NameLookup, revealed: bool) -> Iterator[Fact]:
    yield Fact("Triggers", "primary", bold=True)
    if not record.triggers:
        yield Fact(keyed("Manual only ({automation.run} to run)."), "muted")
    for trigger in record.triggers:
        label = {"cron": "schedule", "custom": "webhook"}.get(trigger.type, trigger.type)
        if trigger.type == "custom" and record.webhook_token:
            yield from _webhook(record, names.endpoint, label, revealed)
        else:
            yield Fact(trigger_words(trigger, names.repositories), label=label)
    for notice in record.notices:
        yield Fact(notice, "warning")


def _webhook(record: Automation, endpoint: str, label: str, revealed: bool) -> Iterator[Fact]:
    """Yield the webhook's URL and how to call it; masked until revealed."""
    token = record.webhook_token or ""
    where = webhook_url(record, endpoint) or webhook_path(record) or ""
    shown = where if revealed else where.replace(token, MASK)
    keys = keyed(("" if revealed else "{automation.reveal} show, ") + "{automation.copy} copy")
    yield Fact(f"POST {shown}  ({keys})", label=label)
    if revealed and (call := webhook_call(record, endpoint)):
        yield Fact(call, label="call", hard=True)
    if record.webhook_signed:
        yield Fact("calls have to be signed with its secret", label="signed")


def _coming(record: Automation, now: datetime) -> Iterator[Fact]:
    if record.cron_expression is None:
        return
    yield Fact()
    off = "" if record.enabled else " if it were on"
    yield Fact(f"Next runs{off}", "primary", bold=True)
    found = coming_of(record, now)
    if found.problem:
        yield Fact(found.problem, "error")
    for moment in found.moments:
        yield Fact(both_clocks(moment, record.cron_timezone))


def _settings(record: Automation, names: NameLookup) -> Iterator[Fact]:
    yield Fact("Configuration", "primary", bold=True)
    yield Fact(names.environment(record.environment_id), label="environment")
    agent = [record.agent_provider or "built-in", record.model, record.thinking_level]
    yield Fact(" · ".join(filter(None, agent)), label="agent")
    for label, value in _more(record):
        if value:
            yield Fact(value, label=label)


def _more(record: Automation) -> Iterator[tuple[str, str | None]]:
    modes = (("plan", record.plan_mode), ("goal", record.goal_mode), ("fast", record.fast_mode))
    yield "modes", ", ".join(name for name, on in modes if on)
    debounce, stop = record.debounce_seconds, record.workspace_auto_stop_minutes
    yield "debounce", f"{debounce} s: a burst of events is one run" if debounce else None
    most = record.debounce_max_seconds
    yield "debounce max", f"{most} s at the latest" if most else None
    yield "max time", f"{record.max_minutes} min a run" if record.max_minutes else None
    yield "at once", f"{record.concurrency} at most" if record.concurrency else None
    if any(trigger.type in {"host-a", "host-b"} for trigger in record.triggers):
        yield "new push", "waits" if record.on_new_event == "queue" else "cancels the earlier run"
        yield "trust", TRUST.get(record.trust, record.trust)
    kept = record.retention_days
    yield "kept", None if kept == RETENTION_DAYS else f"{kept} days"
    policy = record.workspace_lifecycle_policy
    yield "policy", None if policy == "default" else policy.replace("_", " ")
    yield "size", record.workspace_size
    yield "stops", f"after {stop} idle minutes" if stop else None
    yield "base", record.config.get("base")
    wanted = record.config.get("on_success")
    yield "on success", ON_SUCCESS.get(wanted) if wanted else None
    pushes = record.config.get("push")
    yield "push", PUSH.get(pushes) if pushes else None
    skips = record.config.get("skip_while_running")
    yield "overlap", "left out while a run is in progress" if skips else None
    yield "verdict", "asked of each run" if record.config.get("report") else None
    yield "scope", "personal" if record.user_id else "organization"


LABEL = 13
"""Width of the column of labels, in cells."""


class FactsPage(WrappedPage):
    """Facts, one per line."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        super().__init__()
        self._facts = facts

    def _draw(self, width: int) -> list[Line]:
        return [row for fact in self._facts for row in _fact_rows(fact, width)]


def _fact_rows(fact: Fact, width: int) -> Iterator[Line]:
    indent = LABEL if fact.label else 0
    marks = Emphasis.BOLD if fact.bold else Emphasis.NONE
    text = clean(fact.text) if fact.hard else one_line(fact.text)
    span = Span(text, ROLES[fact.color], marks)
    rows = (wrap_hard if fact.hard else wrap)([span], max(8, width - indent - 2))
    for number, row in enumerate(rows):
        label = f" {fact.label}" if number == 0 else ""
        yield (*columns(indent + 1, ColumnCell(label, TextRole.DIM, indent + 1)), *row)


class FactsView(TextView, HasKeyContext):
    """Facts about an automation, or about a run."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.AUTOMATION_FACTS)]
    has_cursor = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: tuple[Fact, ...] = ()

    @property
    def place(self) -> KeyContext:
        return KeyContext.AUTOMATION_FACTS

    def show(self, facts: Iterable[Fact]) -> None:
        """Show these facts; the scroll position is kept."""
        shown = tuple(facts)
        if shown != self._facts:
            self._facts = shown
            self.show_page(FactsPage(shown), keep=True)


class StoryView(FactsView):
    """The facts of a run."""

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.AUTOMATION_RUN)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.AUTOMATION_RUN
