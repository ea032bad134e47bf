"""The hooks of a replica as its events tell them: which one runs, what it prints, how long it took.

    hooks.started -> hooks.progress ... -> hooks.status (its log can be read) -> next, completed or failed

A hook that began before this cockpit watched is told from where it is; its log has the rest.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from quarterdeck.wire.events import EventType, HooksChanged
from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT, HookLog

SAME_START = timedelta(seconds=2)
"""Between the event and the log of one start, at most."""
KEPT = 100
"""Runs whose durations are remembered."""


@dataclass
class LiveHook:
    """A hook that runs now. `whole`: it was watched from its beginning."""

    name: str
    begun_at: datetime
    whole: bool
    pieces: list[str] = field(default_factory=list[str])
    total: int = 0

    def add(self, output: str) -> None:
        """It printed more; of an endless one the beginning is kept, its log has the end."""
        room = HOOK_OUTPUT_LIMIT - self.total
        if room > 0:
            self.pieces.append(output[:room])
        self.total += len(output)

    @property
    def cut(self) -> bool:
        """Whether it printed more than is kept."""
        return self.total > HOOK_OUTPUT_LIMIT

    def last_lines(self, count: int) -> list[str]:
        """The end of what it printed, empty lines left out."""
        tail = "".join(self.pieces[-20:])[-20_000:]
        return [line for line in tail.splitlines() if line.strip()][-count:]


@dataclass
class HookWatch:
    """What is known of a replica's hooks without asking."""

    running: LiveHook | None = None
    failure: str = ""
    """Why the last one failed."""
    ended: int = 0
    """How many have ended: each has a new log."""
    _took: list[tuple[str, datetime, float]] = field(
        default_factory=list[tuple[str, datetime, float]]
    )
    _follows: datetime | None = None
    """When the hook before the running one ended."""

    def take(self, type: str, told: HooksChanged, at: datetime) -> None:
        """Takes an event in."""
        match type:
            case EventType.HOOKS_STARTED:
                self.failure = ""
                self._begin(_first(told.running), at, whole=True)
            case EventType.HOOKS_PROGRESS if told.hook_name:
                self._print(told.hook_name, told.output or "", at)
            case EventType.HOOKS_STATUS if told.hook_name:
                self._end(told.hook_name, at)
            case EventType.HOOKS_COMPLETED:
                self.running = self._follows = None
            case EventType.HOOKS_FAILED:
                self.running = self._follows = None
                self.failure = told.error or ""
            case _:
                pass

    def stopped(self) -> None:
        """Its engine ended: nothing runs."""
        self.running = self._follows = None

    def seconds_of(self, log: HookLog) -> float | None:
        """How long a run took; None when it was not watched."""
        for name, begun_at, seconds in reversed(self._took):
            if name == log.hook_name and abs(begun_at - log.executed_at) < SAME_START:
                return seconds
        return None

    def _begin(self, name: str, at: datetime, *, whole: bool) -> None:
        self.running = LiveHook(name, at, whole)
        self._follows = None

    def _print(self, name: str, output: str, at: datetime) -> None:
        if self.running is None or self.running.name != name:
            # The next one begins when the one before ends, and says so with its first words.
            self._begin(name, self._follows or at, whole=self._follows is not None)
        if self.running is not None:
            self.running.add(output)

    def _end(self, name: str, at: datetime) -> None:
        begun_at = self._follows
        if self.running is not None and self.running.name == name:
            begun_at = self.running.begun_at if self.running.whole else None
        if begun_at is not None:
            self._took = [*self._took, (name, begun_at, (at - begun_at).total_seconds())][-KEPT:]
        self.running, self._follows = None, at
        self.ended += 1


def _first(running: Any) -> str:
    match running:
        case [str(name), *_]:
            return name
        case _:
            return ""
