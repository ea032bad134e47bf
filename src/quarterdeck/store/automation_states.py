"""One automation as the cockpit knows it: its record, its newest run, the runs that were read."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from uuid import UUID

from quarterdeck.wire.automations import Automation, Execution, ExecutionList, ExecutionStatus

UNDER_WAY = {ExecutionStatus.PENDING, ExecutionStatus.CREATING, ExecutionStatus.RUNNING}
SOON = timedelta(hours=1)
"""A moment of a schedule that is nearer than this is due."""
LATE = datetime.max


class Standing(IntEnum):
    """How an automation stands, the most pressing first."""

    SWITCHED_OFF = 0
    """By the service, for its failures."""
    FAILING = 1
    RUNNING = 2
    DUE = 3
    """It has a schedule and a next moment."""
    WAITING = 4
    """For an event, a call of its webhook, or a person."""
    OFF = 5


@dataclass
class RunPages:
    """The newest runs, as far as they were read."""

    runs: list[Execution] = field(default_factory=list[Execution])
    pages: int = 0
    more: bool = True
    loading: bool = False
    total: int = 0

    def take_page(self, page: ExecutionList) -> None:
        """Adds what a page has and is not known yet."""
        known = {run.id for run in self.runs}
        self.runs += [run for run in page.executions if run.id not in known]
        self.runs.sort(key=lambda run: run.triggered_at, reverse=True)
        self.pages = page.page
        self.total = page.total
        self.more = page.page < page.total_pages and bool(page.executions)

    def take(self, run: Execution) -> None:
        """A run as it is told of: a new one stands first."""
        for index, known in enumerate(self.runs):
            if known.id == run.id:
                self.runs[index] = merged(known, run)
                return
        self.runs.insert(0, run)
        self.runs.sort(key=lambda one: one.triggered_at, reverse=True)
        self.total += 1

    def find(self, run_id: UUID) -> Execution | None:
        """A run that is known."""
        return next((run for run in self.runs if run.id == run_id), None)


@dataclass
class AutomationState:
    """State of an automation. `newest` is its last run, None while there is none known."""

    record: Automation
    newest: Execution | None = None
    history: RunPages | None = None
    """None until somebody looks at its runs."""

    @property
    def id(self) -> UUID:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def next_at(self) -> datetime | None:
        """The next moment of its schedule."""
        return self.record.cron_next_fire_at if self.record.enabled else None

    @property
    def standing(self) -> Standing:
        if not self.record.enabled:
            return Standing.SWITCHED_OFF if self.record.disabled_reason else Standing.OFF
        if self.newest is not None:
            if self.newest.status == ExecutionStatus.FAILED:
                return Standing.FAILING
            if under_way(self.newest):
                return Standing.RUNNING
        return Standing.DUE if self.next_at else Standing.WAITING

    @property
    def trouble(self) -> str | None:
        """Why it needs a person, or None."""
        if self.standing == Standing.SWITCHED_OFF:
            return self.record.disabled_reason
        if self.standing == Standing.FAILING and self.newest is not None:
            return self.newest.error or "Its last run failed."
        return None

    def sort_key(self) -> tuple[int, float, str]:
        """Attention first, then what comes next, then the name."""
        due = self.next_at.timestamp() if self.next_at else LATE.timestamp()
        return (int(self.standing), due, self.name)

    def take_run(self, run: Execution) -> None:
        """A run of it is another, or new."""
        if self.newest is not None and self.newest.id == run.id:
            self.newest = merged(self.newest, run)
        elif self.newest is None or run.triggered_at >= self.newest.triggered_at:
            self.newest = run
        if self.history is not None:
            self.history.take(run)

    def take_page(self, page: ExecutionList) -> None:
        """A page of its runs."""
        if self.history is None:
            self.history = RunPages()
        self.history.take_page(page)
        if self.history.runs:
            self.newest = self.history.runs[0]


@dataclass(frozen=True)
class Summary:
    """What one line says of all automations."""

    failing: int = 0
    running: int = 0
    due: int = 0

    @property
    def words(self) -> str:
        """`1 failing`, else `2 due`, else what runs; empty when there is nothing to tell."""
        if self.failing:
            return f"{self.failing} failing"
        if self.due:
            return f"{self.due} due"
        return f"{self.running} running" if self.running else ""


def summary(states: Iterable[AutomationState], now: datetime) -> Summary:
    """How many need a person, run, and are due within the hour."""
    failing = running = due = 0
    for state in states:
        failing += state.standing in {Standing.SWITCHED_OFF, Standing.FAILING}
        running += state.standing == Standing.RUNNING
        due += state.next_at is not None and state.next_at - now <= SOON
    return Summary(failing, running, due)


def under_way(run: Execution) -> bool:
    """Whether a run has not ended."""
    return run.status in UNDER_WAY


def merged(known: Execution, told: Execution) -> Execution:
    """A run with what is told of it now: an event says less than the record."""
    new = {name: getattr(told, name) for name in told.model_fields_set}
    return known.model_copy(update=new)


def knows_payload(run: Execution) -> bool:
    """Whether the record was read: an event leaves the payload out."""
    return "trigger_payload" in run.model_fields_set
