"""Keeps the state of the workspace's repositories up to date.

They are read only after activity. One read runs at a time; requests meanwhile wait for the next.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from quarterdeck.engine.git import read_repository
from quarterdeck.engine.journal import Journal, event
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.wire.events import EventType
from quarterdeck.wire.git_state import (
    EngineRepository,
    ReposChanged,
)

QUIET_SECONDS = 1.0
"""Repositories are read once activity has stopped for this long,"""


RESTLESS_SECONDS = 10.0
"""or during activity, this often at most, and for at most a tenth of the time."""


class Repos:
    """The repositories of the configuration. Without any, nothing is read."""

    def __init__(
        self,
        repositories: Sequence[EngineRepository],
        environment: Mapping[str, str],
        journal: Journal,
        tasks: TaskOwner,
        start_hooks_completed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._repositories = repositories
        self._environment = environment
        self._journal = journal
        self._tasks = tasks
        self._start_hooks_completed = start_hooks_completed
        self._known: ReposChanged | None = None
        self._reading: asyncio.Task[ReposChanged] | None = None
        self._next_reading: asyncio.Task[ReposChanged] | None = None
        self._cost = 0.0
        self._read_at = 0.0
        self._active_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._clock = asyncio.get_running_loop().time

    def __len__(self) -> int:
        return len(self._repositories)

    async def refresh(self) -> ReposChanged:
        """Read now; return the result of a read that started after this call."""
        if self._reading is None or self._reading.done():
            self._reading = self._start()
            return await asyncio.shield(self._reading)
        if self._next_reading is None or self._next_reading.done():
            self._next_reading = self._tasks.start(
                self._after(self._reading), "repositories, once more"
            )
        return await asyncio.shield(self._next_reading)

    def changed(self) -> None:
        """Read the repositories once activity stops. Cheap, may be called often."""
        self._active_at = self._clock()
        if self._timer is None and self._repositories:
            self._arm(QUIET_SECONDS)

    def close(self) -> None:
        """Stop waiting for activity to stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._quiet)

    def _quiet(self) -> None:
        self._timer = None
        now = self._clock()
        quiet = now - self._active_at >= QUIET_SECONDS * 0.9
        since = now - self._read_at
        if since < 10 * self._cost or (not quiet and since < RESTLESS_SECONDS):
            self._arm(QUIET_SECONDS)
        else:
            self._tasks.start(self.refresh(), "repositories after activity")

    def _start(self) -> asyncio.Task[ReposChanged]:
        return self._tasks.start(self._read_all(), "repositories")

    async def _after(self, running: asyncio.Task[ReposChanged]) -> ReposChanged:
        await asyncio.wait({running})
        self._reading, self._next_reading = self._start(), None
        return await asyncio.shield(self._reading)

    async def _read_all(self) -> ReposChanged:
        began = self._clock()
        completed = self._start_hooks_completed()
        state = ReposChanged(
            repos=[
                await read_repository(one, self._environment, hooks_completed=completed)
                for one in self._repositories
            ]
        )
        self._read_at = self._clock()
        self._cost = self._read_at - began
        if state != self._known:
            previous, self._known = self._known, state
            type = EventType.REPO_STATUS_CHANGED if previous else EventType.REPO_DISCOVERED
            await self._journal.append(event(type, state))
        return state
