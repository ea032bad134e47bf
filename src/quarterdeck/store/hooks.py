"""Hooks of a replica: the running one, its output and its duration, from events.

    hooks.started -> hooks.progress ... -> hooks.status (its log can be read) -> next, completed or failed

A hook that started before this cockpit is shown from its current output on; its log has the rest.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from quarterdeck.wire.events import EventType, HooksChanged

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.setup import HookLog, HookLogs


SAME_START = timedelta(seconds=2)
"""Maximum difference between the event and the log of one start."""
KEPT = 100
"""Runs whose durations are kept."""


@dataclass
class LiveHook:
    """A running hook. `whole`: it was watched from its start."""

    name: str
    started_at: datetime
    whole: bool
    pieces: list[str] = field(default_factory=list[str])
    total: int = 0

    def add(self, output: str) -> None:
        """Add output; of a long one only the start is kept, its log has the end."""
        if (room := self._room) > 0:
            self.pieces.append(output[:room])
        self.total += len(output)

    @property
    def cut(self) -> bool:
        """Whether its output is longer than what is kept."""
        return self._room < 0

    @property
    def _room(self) -> int:
        from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT

        return HOOK_OUTPUT_LIMIT - self.total

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines of its output, without empty ones."""
        tail = "".join(self.pieces[-20:])[-20_000:]
        return [line for line in tail.splitlines() if line.strip()][-count:]


@dataclass
class HookWatch:
    """The state of a replica's hooks, from events only."""

    running: LiveHook | None = None
    failure: str = ""
    """Why the last one failed."""
    ended: int = 0
    """Number of hooks that have ended: each has a new log."""
    _took: list[tuple[str, datetime, float]] = field(
        default_factory=list[tuple[str, datetime, float]]
    )
    _follows: datetime | None = None
    """When the previous hook ended, while the next has not started."""

    def take(self, type: str, event: HooksChanged, at: datetime) -> None:
        """Apply an event."""
        match type:
            case EventType.HOOKS_STARTED:
                self.failure = ""
                self._begin(_first(event.running), at, whole=True)
            case EventType.HOOKS_PROGRESS if event.hook_name:
                self._print(event.hook_name, event.output or "", at)
            case EventType.HOOKS_STATUS if event.hook_name:
                self._end(event.hook_name, at)
            case EventType.HOOKS_COMPLETED:
                self.running = self._follows = None
            case EventType.HOOKS_FAILED:
                self.running = self._follows = None
                self.failure = event.error or ""
            case _:
                pass

    def stopped(self) -> None:
        """Note that the engine ended: nothing runs."""
        self.running = self._follows = None

    def seconds_of(self, log: "HookLog") -> float | None:
        """Return how long a run took; None when it was not watched."""
        for name, started_at, seconds in reversed(self._took):
            if name == log.hook_name and abs(started_at - log.executed_at) < SAME_START:
                return seconds
        return None

    def _begin(self, name: str, at: datetime, *, whole: bool) -> None:
        self.running = LiveHook(name, at, whole)
        self._follows = None

    def _print(self, name: str, output: str, at: datetime) -> None:
        if self.running is None or self.running.name != name:
            # The next hook starts when the previous one ends; its first output shows that.
            self._begin(name, self._follows or at, whole=self._follows is not None)
        if self.running is not None:
            self.running.add(output)

    def _end(self, name: str, at: datetime) -> None:
        started_at = self._follows
        if self.running is not None and self.running.name == name:
            started_at = self.running.started_at if self.running.whole else None
        if started_at is not None:
            self._took = [*self._took, (name, started_at, (at - started_at).total_seconds())][
                -KEPT:
            ]
        self.running, self._follows = None, at
        self.ended += 1


def _first(running: list[str]) -> str:
    return running[0] if running else ""


_OF_REPOSITORY = "repository:"


class HookRun(NamedTuple):
    """One run. `seconds` is None when unknown; `repository` for an environment's."""

    kind: str
    name: str
    repository: str | None
    exit_code: int | None
    timed_out: bool
    executed_at: datetime
    seconds: float | None
    output: str
    left_out: int
    """Characters at the start of the output that the log has dropped."""
    script: str

    @property
    def failed(self) -> bool:
        return self.timed_out or self.exit_code != 0

    @property
    def key(self) -> str:
        """A key of the run, unique within a replica."""
        return f"{self.kind}\0{self.name}\0{self.executed_at.isoformat()}"


async def read_runs(owner: "AppState", replica_id: UUID, watch: HookWatch) -> list[HookRun]:
    """Return every run, the newest first.

    Raises:
        ClientError: refused or unreachable.
    """
    return runs_of(await owner.client.hook_logs.read(replica_id), watch)


def runs_of(logs: "HookLogs", watch: HookWatch) -> list[HookRun]:
    """Return the runs of both kinds, the newest first."""
    logs_of_both = [*logs.warm_hooks.logs, *logs.start_hooks.logs]
    runs = [_run(log, _seconds(log, watch)) for log in logs_of_both]
    return sorted(runs, key=lambda run: run.executed_at, reverse=True)


def _seconds(log: "HookLog", watch: HookWatch) -> float | None:
    """Return a run's seconds from its log, or as watched where a server's log lacks them."""
    return watch.seconds_of(log) if log.duration_ms is None else log.duration_ms / 1000


def _run(log: "HookLog", seconds: float | None) -> HookRun:
    of_repository = log.hook_name.startswith(_OF_REPOSITORY)
    script = log.hook_script or "\n".join(log.hook_commands or ())
    return HookRun(
        kind=log.hook_type,
        name=log.hook_name,
        repository=log.hook_name.removeprefix(_OF_REPOSITORY) if of_repository else None,
        exit_code=log.exit_code,
        timed_out=log.timed_out,
        executed_at=log.executed_at,
        seconds=seconds,
        output=log.output,
        left_out=max(0, log.output_total_chars - len(log.output)) if log.output_truncated else 0,
        script=script,
    )


def said_name(name: str) -> str:
    """Return a hook's name for display."""
    if name.startswith(_OF_REPOSITORY):
        return f"{name.removeprefix(_OF_REPOSITORY)} (its own)"
    return name
