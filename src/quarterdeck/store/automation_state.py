"""The state of an automation in the cockpit: its record, its newest run, the runs that were read."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from quarterdeck.wire.automation_runs import (
    UNCOUNTED_REASONS,
    Execution,
    ExecutionList,
    ExecutionStatus,
    SkippedMoments,
)
from quarterdeck.wire.automations import Automation

UNDER_WAY = {ExecutionStatus.PENDING, ExecutionStatus.CREATING, ExecutionStatus.RUNNING}
SOON = timedelta(hours=1)
"""A time of a schedule that is nearer than this is due."""
LATE = datetime.max


class Standing(IntEnum):
    """The status of an automation, the most pressing first."""

    SWITCHED_OFF = 0
    """By the service, for its failures."""
    FAILING = 1
    APPROVAL = 2
    """Its last run waits until somebody approves it."""
    RUNNING = 3
    DUE = 4
    """It has a schedule and a next time."""
    WAITING = 5
    """For an event, a call of its webhook, or a person."""
    OFF = 6


@dataclass
class RunPages:
    """The newest runs, as far as they were read."""

    runs: list[Execution] = field(default_factory=list[Execution])
    pages: int = 0
    more: bool = True
    loading: bool = False
    total: int = 0
    skipped: list[SkippedMoments] = field(default_factory=list[SkippedMoments])
    """Times of the schedule that started no run, newest first."""

    def take_page(self, page: ExecutionList) -> None:
        """Add the runs of a page that are not known yet."""
        known = {run.id for run in self.runs}
        self.runs += [run for run in page.executions if run.id not in known]
        self.runs.sort(key=lambda run: run.triggered_at, reverse=True)
        self.take_skipped(page.skipped)
        self.pages = page.page
        self.total = page.total
        self.more = page.page < page.total_pages and bool(page.executions)

    def take_skipped(self, skipped: list[SkippedMoments]) -> None:
        """Add or update times that started no run."""
        known = {moments.id: moments for moments in [*self.skipped, *skipped]}
        self.skipped = sorted(known.values(), key=lambda one: one.last_at, reverse=True)

    def take(self, run: Execution) -> None:
        """Add or update a run; the newest is first."""
        for index, known in enumerate(self.runs):
            if known.id == run.id:
                self.runs[index] = merged(known, run)
                return
        self.runs.insert(0, run)
        self.runs.sort(key=lambda one: one.triggered_at, reverse=True)
        self.total += 1

    def find(self, run_id: UUID) -> Execution | None:
        """Return a run that is known."""
        return next((run for run in self.runs if run.id == run_id), None)


@dataclass
class AutomationState:
    """State of an automation. `newest` is its last run, None while none is known."""

    record: Automation
    newest: Execution | None = None
    history: RunPages | None = None
    """None until its runs are shown."""

    @property
    def id(self) -> UUID:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def next_at(self) -> datetime | None:
        """The next time of its schedule."""
        return self.record.cron_next_fire_at if self.record.enabled else None

    @property
    def standing(self) -> Standing:
        if not self.record.enabled:
            return Standing.SWITCHED_OFF if self.record.disabled_reason else Standing.OFF
        if self.newest is not None:
            if has_failed(self.newest):
                return Standing.FAILING
            if self.newest.awaiting_approval:
                return Standing.APPROVAL
            if under_way(self.newest):
                return Standing.RUNNING
        return Standing.DUE if self.next_at else Standing.WAITING

    @property
    def problem(self) -> str | None:
        """Why it needs a person, or None."""
        if self.standing == Standing.SWITCHED_OFF:
            return self.record.disabled_reason
        if self.standing == Standing.FAILING and self.newest is not None:
            return self.newest.error or "Last run failed."
        return None

    def sort_key(self) -> tuple[int, float, str]:
        """Return a key that sorts by status, then by the next time, then by name."""
        due = self.next_at.timestamp() if self.next_at else LATE.timestamp()
        return (int(self.standing), due, self.name)

    def take_run(self, run: Execution) -> None:
        """Apply a new or changed run of the automation."""
        if self.newest is not None and self.newest.id == run.id:
            self.newest = merged(self.newest, run)
        elif self.newest is None or run.triggered_at >= self.newest.triggered_at:
            self.newest = run
        if self.history is not None:
            self.history.take(run)

    def take_page(self, page: ExecutionList) -> None:
        """Add a page of its runs."""
        if self.history is None:
            self.history = RunPages()
        self.history.take_page(page)
        if self.history.runs:
            self.newest = self.history.runs[0]


class Summary(NamedTuple):
    """Counts over all automations, for one line."""

    failing: int = 0
    running: int = 0
    due: int = 0
    approval: int = 0

    @property
    def text(self) -> str:
        """The most pressing count: `1 failing`, `1 to approve`, `2 due`, `1 running`, or empty."""
        if self.failing:
            return f"{self.failing} failing"
        if self.approval:
            return f"{self.approval} to approve"
        if self.due:
            return f"{self.due} due"
        return f"{self.running} running" if self.running else ""


def summary(states: Iterable[AutomationState], now: datetime) -> Summary:
    """Count the automations that are failing, wait for approval, run, or are due within the hour."""
    failing = running = due = approval = 0
    for state in states:
        failing += state.standing in {Standing.SWITCHED_OFF, Standing.FAILING}
        approval += state.standing == Standing.APPROVAL
        running += state.standing == Standing.RUNNING
        due += state.next_at is not None and state.next_at - now <= SOON
    return Summary(failing, running, due, approval)


def has_failed(run: Execution) -> bool:
    """Return whether a run failed, and was not ended by a person or a newer push."""
    return run.status == ExecutionStatus.FAILED and run.reason not in UNCOUNTED_REASONS


def under_way(run: Execution) -> bool:
    """Return whether a run has not ended."""
    return run.status in UNDER_WAY


def merged(known: Execution, update: Execution) -> Execution:
    """Return a run with the fields of an update applied: an event has fewer than the record."""
    new = {name: getattr(update, name) for name in update.model_fields_set}
    return known.model_copy(update=new)


def knows_payload(run: Execution) -> bool:
    """Return whether the full record was read: events leave the payload out."""
    return "trigger_payload" in run.model_fields_set
