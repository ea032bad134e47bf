"""The one owner of what automations do by themselves: fires schedules, starts runs that wait.

Everything it knows is in the database, so it may be killed anywhere, and several may run.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from quarterdeck.service.automations.changes import Watch
from quarterdeck.service.automations.firing import fire_due
from quarterdeck.service.automations.following import HEARD
from quarterdeck.service.automations.launching import launch
from quarterdeck.service.automations.unanswered import end_overdue, overdue
from quarterdeck.service.checks.sender import CheckSender
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError, DatabaseClosedError, StorageError
from quarterdeck.service.fleet.fleet import fleet_of
from quarterdeck.service.moments import moment_text
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.automations import next_scheduled
from quarterdeck.service.records.events import StoredEvent
from quarterdeck.service.records.executions import due_executions, next_due
from quarterdeck.service.records.receipts import forget_receipts

log = logging.getLogger(__name__)

RECEIPTS_KEPT = timedelta(days=7)
"""So long a host's webhook that comes again is known."""
TIDIED_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class RunnerSettings:
    """Limits of the runner; times in seconds."""

    longest_wait: float = 10.0
    """The database is looked at after this at the latest, for what another service has stored."""
    busy_wait: float = 1.0
    """And after this when something is due that could not be begun."""
    at_once: int = 8
    """Runs that are being started at one time."""


class AutomationRunner:
    """Schedules and waiting runs of one service; started and closed with the application."""

    def __init__(self, context: ServiceContext, settings: RunnerSettings | None = None) -> None:
        self.watch = Watch(context.database)
        self.checks = CheckSender(context)
        context.checks = self.checks
        self._context = context
        self._settings = settings or RunnerSettings()
        self._called = asyncio.Event()
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._tidied: datetime | None = None
        context.event_log.observe(self._hear)

    def start(self) -> None:
        """Begins, first with what came due meanwhile."""
        self._task = asyncio.create_task(self._run(), name="automations")
        self.checks.start()

    def nudge(self) -> None:
        """An automation was changed, or a run stored."""
        self._called.set()
        self.watch.nudge()
        self.checks.nudge()

    async def close(self) -> None:
        """Ends; runs that were being started are started by whoever comes next."""
        tasks = [*self._starting.values(), *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.checks.close()

    async def turn(self) -> None:
        """Fires what has come, ends what waits in vain, and begins to start what may start."""
        now = self._context.clock()
        while await until_stored(lambda: self._fire(now)):
            self.watch.nudge()
        await self._end_overdue(now)
        await self._start_due(moment_text(now))
        await self._tidy(now)

    async def _run(self) -> None:
        try:
            while True:
                self._called.clear()
                # With the same moment below: what became due since is not overlooked.
                now = self._context.clock()
                await self.turn()
                await self._wait(now)
        except DatabaseClosedError:
            return

    async def _tidy(self, now: datetime) -> None:
        """Forgets receipts of webhooks, now and then."""
        if self._tidied is not None and now - self._tidied < TIDIED_EVERY:
            return
        before = moment_text(now - RECEIPTS_KEPT)
        await until_stored(
            lambda: self._context.database.write(lambda c: forget_receipts(c, before))
        )
        self._tidied = now

    async def _end_overdue(self, now: datetime) -> None:
        database = self._context.database
        if await until_stored(lambda: database.read(lambda c: overdue(c, now))):
            await until_stored(lambda: database.write(lambda c: end_overdue(c, now)))
            self.watch.nudge()
            self.checks.nudge()

    async def _fire(self, now: datetime) -> int:
        first = await self._context.database.read(next_scheduled)
        if first is None or first > moment_text(now):
            return 0
        return await self._context.database.write(lambda c: fire_due(c, now))

    async def _start_due(self, now: str) -> None:
        most = self._settings.at_once + len(self._starting)
        room = self._settings.at_once - len(self._starting)
        due = await until_stored(
            lambda: self._context.database.read(lambda c: due_executions(c, now, most))
        )
        for row in due:
            if room > 0 and row["id"] not in self._starting:
                room -= 1
                self._begin(row["id"])

    def _begin(self, execution_id: str) -> None:
        task = asyncio.create_task(self._launch(execution_id), name="start of a run")
        self._starting[execution_id] = task
        task.add_done_callback(lambda _: self._begun(execution_id))

    def _begun(self, execution_id: str) -> None:
        self._starting.pop(execution_id, None)
        self.nudge()

    async def _launch(self, execution_id: str) -> None:
        try:
            await launch(self._context, fleet_of(self._context), execution_id)
        except ApiError:
            return  # kept with the run
        except DatabaseClosedError:
            return
        except StorageError:
            log.exception("Run %s could not be started; it is tried again", execution_id)
            await asyncio.sleep(self._settings.longest_wait)

    async def _wait(self, now: datetime) -> None:
        soonest = await until_stored(
            lambda: self._context.database.read(lambda c: (next_scheduled(c), next_due(c)))
        )
        delay = self._settings.longest_wait
        for text in soonest:
            if text is not None:
                due = (datetime.fromisoformat(text) - now).total_seconds()
                # What is due still is being started, or is another service's.
                delay = min(delay, due + 0.001 if due > 0 else self._settings.busy_wait)
        try:
            async with asyncio.timeout(delay):
                await self._called.wait()
        except TimeoutError:
            return

    def _hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        if any(event.type in HEARD for event in stored):
            self.watch.nudge()
            self.checks.nudge()
