"""Keeps the state of the workspace's repositories: looked at after something happened, never else.

One look at a time; what is asked for during a look is answered by one more after it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from quarterdeck.engine.drafts import event
from quarterdeck.engine.git import GitError, read_checkout
from quarterdeck.engine.journal import Journal
from quarterdeck.engine.tasks import Tasks
from quarterdeck.wire.engine import EngineRepository
from quarterdeck.wire.events import EventRepository, EventType, ReposChanged
from quarterdeck.wire.replicas import GitDiff

logger = logging.getLogger(__name__)

QUIET_SECONDS = 1.0
"""Activity is followed by a look once it has been quiet this long,"""
RESTLESS_SECONDS = 10.0
"""or while it goes on, this often at most, and never more than a tenth of the time."""


class Repos:
    """The repositories of the configuration. Nothing is looked at while there are none."""

    def __init__(
        self,
        repositories: Sequence[EngineRepository],
        environment: Mapping[str, str],
        journal: Journal,
        tasks: Tasks,
        start_hooks_completed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._repositories = repositories
        self._environment = environment
        self._journal = journal
        self._tasks = tasks
        self._start_hooks_completed = start_hooks_completed
        self._known: ReposChanged | None = None
        self._look: asyncio.Task[ReposChanged] | None = None
        self._again: asyncio.Task[ReposChanged] | None = None
        self._cost = 0.0
        self._looked_at = 0.0
        self._active_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._clock = asyncio.get_running_loop().time

    def __len__(self) -> int:
        return len(self._repositories)

    async def refresh(self) -> ReposChanged:
        """Looks now; returns what a look that began after this call has found."""
        if self._look is None or self._look.done():
            self._look = self._start()
            return await asyncio.shield(self._look)
        if self._again is None or self._again.done():
            self._again = self._tasks.start(self._after(self._look), "repositories, once more")
        return await asyncio.shield(self._again)

    def changed(self) -> None:
        """Something may have changed files: looks once it is quiet. Cheap, may be called often."""
        self._active_at = self._clock()
        if self._timer is None and self._repositories:
            self._arm(QUIET_SECONDS)

    def close(self) -> None:
        """Stops waiting for quiet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._quiet)

    def _quiet(self) -> None:
        self._timer = None
        now = self._clock()
        quiet = now - self._active_at >= QUIET_SECONDS * 0.9
        since = now - self._looked_at
        if since < 10 * self._cost or (not quiet and since < RESTLESS_SECONDS):
            self._arm(QUIET_SECONDS)
        else:
            self._tasks.start(self.refresh(), "repositories after activity")

    def _start(self) -> asyncio.Task[ReposChanged]:
        return self._tasks.start(self._look_at_all(), "repositories")

    async def _after(self, running: asyncio.Task[ReposChanged]) -> ReposChanged:
        await asyncio.wait({running})
        self._look, self._again = self._start(), None
        return await asyncio.shield(self._look)

    async def _look_at_all(self) -> ReposChanged:
        began = self._clock()
        found = ReposChanged(repos=[await self._look_at(one) for one in self._repositories])
        self._looked_at = self._clock()
        self._cost = self._looked_at - began
        if found != self._known:
            known, self._known = self._known, found
            type = EventType.REPO_STATUS_CHANGED if known else EventType.REPO_DISCOVERED
            await self._journal.append(event(type, found))
        return found

    async def _look_at(self, one: EngineRepository) -> EventRepository:
        state = EventRepository(
            name=one.name,
            path=one.path,
            default_branch=one.default_branch,
            start_hooks_completed=self._start_hooks_completed(),
        )
        try:
            checkout = await read_checkout(Path(one.path), one.base_commit, self._environment)
        except GitError as error:
            logger.warning("the repository %s cannot be read: %s", one.name, error)
            return state
        state.current_branch = checkout.branch
        state.git_diff = GitDiff(added=checkout.added, removed=checkout.removed)
        state.untracked = [name.encode(errors="replace").decode() for name in checkout.untracked]
        return state
