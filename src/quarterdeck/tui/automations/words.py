"""Automations, runs and moments in few words. No word here grows old while nothing happens."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quarterdeck.store.automation_states import AutomationState, Standing, under_way
from quarterdeck.tui.marks import Mark
from quarterdeck.wire.automations import Automation, Execution, ExecutionStatus, StoredTrigger

STANDINGS = {
    Standing.SWITCHED_OFF: Mark("✗", "switched off", "error"),
    Standing.FAILING: Mark("✗", "failing", "error"),
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
VERDICTS = {
    "success": Mark("✓", "success", "success"),
    "failure": Mark("✗", "failure", "error"),
    "neutral": Mark("○", "no verdict", "muted"),
    "cancelled": Mark("○", "superseded", "muted"),
}
WEEK = timedelta(days=6)


def run_mark(run: Execution) -> Mark:
    """How a run stands; one that this version does not know by its own word."""
    known = next((mark for status, mark in RUNS.items() if status == run.status), None)
    return known or Mark("?", run.status, "muted")


def verdict_mark(run: Execution) -> Mark | None:
    """What its check says: the conclusion, else how the check stands."""
    if run.check is None:
        return None
    if run.check.conclusion is None:
        return Mark("◌", f"check {run.check.status}", "muted")
    known = VERDICTS.get(run.check.conclusion)
    return known or Mark("?", run.check.conclusion, "muted")


def when(moment: datetime, now: datetime) -> str:
    """A moment by this machine's clock: `09:00` today, `Mon 09:00` within a week, else the date."""
    day = far_day(moment, now)
    return f"{day} {moment.astimezone():%H:%M}" if day else near(moment, now)


def soon_or_day(moment: datetime, now: datetime) -> str:
    """The same without the clock for a day that is far."""
    return far_day(moment, now) or near(moment, now)


def near(moment: datetime, now: datetime) -> str:
    """A moment within a week."""
    local = moment.astimezone()
    return f"{local:%H:%M}" if local.date() == now.astimezone().date() else f"{local:%a %H:%M}"


def far_day(moment: datetime, now: datetime) -> str:
    """The day of a moment that is further away than a week; empty for a nearer one."""
    local, today = moment.astimezone(), now.astimezone()
    if abs(local.date() - today.date()) <= WEEK:
        return ""
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year}"


def took(run: Execution) -> str:
    """How long a run that has ended took."""
    if run.completed_at is None:
        return ""
    seconds = max(0, int((run.completed_at - run.triggered_at).total_seconds()))
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{seconds % 60:02}s" if minutes else f"{seconds}s"


def both_clocks(moment: datetime, zone: str | None) -> str:
    """A moment in the zone of a schedule, and by the clock of this machine."""
    here = moment.astimezone()
    try:
        there = moment.astimezone(ZoneInfo(zone or "UTC"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{here:%a %d %b %H:%M %Z}"
    told = f"{there:%a %d %b %H:%M} {zone or 'UTC'}"
    if there.utcoffset() == here.utcoffset():
        return told
    day = "" if there.date() == here.date() else f"{here:%a} "
    return f"{told} · {day}{here:%H:%M} here"


def next_words(state: AutomationState, now: datetime) -> str:
    """What comes next: a moment, or what it waits for."""
    if not state.record.enabled:
        return "off"
    if state.next_at is not None:
        return soon_or_day(state.next_at, now)
    types = {trigger.type for trigger in state.record.triggers}
    if types & {"host-a", "host-b"}:
        return "on events"
    return "webhook" if "custom" in types else "by hand"


def last_words(state: AutomationState, now: datetime) -> str:
    """The last run and its verdict."""
    run = state.newest
    if run is None:
        return "not run yet"
    if under_way(run):
        return f"{run_mark(run).word} since {when(run.triggered_at, now)}"
    verdict = verdict_mark(run)
    told = f", check {verdict.sign}" if verdict and verdict.color != "muted" else ""
    return f"{run_mark(run).sign} {when(run.triggered_at, now)}{told}"


def trigger_words(trigger: StoredTrigger, repositories: Mapping[UUID, str]) -> str:
    """What fires it, with its filters."""
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


def webhook_path(automation: Automation) -> str | None:
    """Where its webhook is called, below the service's address."""
    token = automation.webhook_token
    return f"/v1/automations/webhook/{token}" if token else None


def webhook_call(automation: Automation, endpoint: str) -> str | None:
    """What calls it from elsewhere: its URL, or through the service's socket a command."""
    path = webhook_path(automation)
    if path is None or "://" in endpoint:
        return path and f"{endpoint.rstrip('/')}{path}"
    if endpoint.startswith("unix:"):
        socket = endpoint.removeprefix("unix:")
        return f"curl -X POST --unix-socket '{socket}' 'http://localhost{path}'"
    return path


def run_trigger(run: Execution) -> str:
    """What set a run off."""
    return " ".join(filter(None, (run.trigger_type, run.trigger_event))) or "-"
