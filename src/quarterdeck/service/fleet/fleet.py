"""The running workspaces of one service, and what puts idle ones to rest."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy import Connection

from quarterdeck.engine.link import EngineError, EngineLink
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from quarterdeck.service.chats.rows import has_undelivered
from quarterdeck.service.context import ServiceContext, parts
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.environments.warm_pool_rows import WarmState
from quarterdeck.service.environments.warm_pools import PoolKeeper
from quarterdeck.service.errors import (
    DatabaseClosedError,
    DatabaseLostError,
    ServiceError,
    StorageError,
)
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.fleet.runtime import Dependencies, WorkspaceRuntime, append_error
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.fleet.transitions import enter_sleeping, finish_removals, forget
from quarterdeck.service.fleet.workspace_manager import WorkspaceManager
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import (
    BUSY,
    UNCLAIMED_KEPT,
    WorkspaceRow,
    active_workspaces,
    asleep_since,
    drop_unclaimed,
    has_unclaimed,
    is_unused,
    unused_since,
    work_of,
    workspaces_in,
)
from quarterdeck.service.repositories.rows import needed_repositories
from quarterdeck.wire.engine import EngineReport
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES

ANSWER_WITHIN = timedelta(hours=24)
"""A chat that waits longer for an answer keeps no workspace awake (docs/interface.md 11)."""
SLEEPS_WHEN_DONE = "sleep_when_done"
ARCHIVED_WHEN_DONE = "archive_when_done"


class Idleness:
    """Checks one workspace, first by its rows, then by its engine's current report."""

    def __init__(self, site: WorkspaceRuntime, row: WorkspaceRow, now: datetime) -> None:
        self._site = site
        self._auto_stop = timedelta(minutes=row.auto_stop_minutes or AUTO_STOP_MINUTES)
        self._ends_when_done = row.lifecycle_policy in (SLEEPS_WHEN_DONE, ARCHIVED_WHEN_DONE)
        self._now = now
        self._age = timedelta()
        """Minimum age of the report."""
        self.done = False
        """The work is done, which is the reason to rest."""

    async def suspected(self) -> bool:
        """Return whether it may be time to rest, by the database alone."""
        pulse = self._site.pulse
        if pulse.last_seen is not None:
            self._age = max(self._now - pulse.last_seen, timedelta())
        return pulse.report is not None and await self._due(pulse.report)

    async def confirmed(self) -> bool:
        """Return whether it is time to rest. Nothing is delivered to the engine in the meantime."""
        self._age = timedelta()
        report = await self._read_report()
        return report is not None and await self._due(report)

    async def _due(self, report: EngineReport) -> bool:
        if report.hooks_running or report.terminals_attached:
            return False
        held_back = [str(id) for id in report.chats_held_back]
        database = self._site.tools.context.database
        work = await database.read(lambda c: work_of(c, self._site.id, held_back))
        if work is None or work.pending or report.chats_processing > len(work.asked_at):
            return False
        if any(asked_at > moment_text(self._now - ANSWER_WITHIN) for asked_at in work.asked_at):
            return False
        done = (
            not work.asked_at
            and not held_back
            and self._ends_when_done
            and (work.done or self._site.pulse.turn_ended)
        )
        self.done = done
        pause = timedelta(seconds=self._site.tools.settings.done_pause) if done else self._auto_stop
        if work.last_activity_at > moment_text(self._now - pause):
            return False
        return self._unused(report) + self._age >= pause

    def _unused(self, report: EngineReport) -> timedelta:
        """Return for how long nobody had used the engine when it reported."""
        if report.idle_seconds is not None:
            return timedelta(seconds=report.idle_seconds)
        # An engine of an earlier version reports the moment, by its clock.
        used = report.last_activity_at
        return self._now - used if used is not None else timedelta.max / 2

    async def _read_report(self) -> EngineReport | None:
        """Return the engine's current report; None, which proves nothing, if it fails."""
        link: EngineLink | None = self._site.line.link
        if link is None:
            return None
        try:
            async with asyncio.timeout(self._site.tools.settings.call_limit):
                return await link.status()
        except (EngineError, TimeoutError):
            return None


ARCHIVE_AFTER = timedelta(days=7)
DELETE_AFTER = timedelta(hours=24)
AGAIN_AFTER = timedelta(hours=1)
"""How long a failed change, for instance on a full disk, is not tried again."""

log = logging.getLogger(__name__)


class IdleReaper:
    """Puts unused workspaces to rest, by their policies (docs/interface.md 3).

    | workspace | after | becomes |
    |---|---|---|
    | active, nothing running | its auto-stop time, by default 60 minutes | sleeping |
    | active, `sleep_when_done` | the turn's end, with an empty queue | sleeping |
    | active, `archive_when_done` | the same | archived |
    | sleeping | 7 days | archived |
    | sleeping, archived, error, `delete_after_inactivity` | 24 hours | deleted |
    """

    def __init__(
        self,
        tools: Dependencies,
        of: Callable[[str], WorkspaceManager],
        delete: Callable[[str, Callable[[Connection], bool]], Coroutine[Any, Any, bool]],
    ) -> None:
        self._tools = tools
        self._of = of
        self._delete = delete
        self._doing: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, datetime] = {}
        self._packing = asyncio.Semaphore(1)

    async def run(self) -> None:
        """Check all workspaces forever."""
        try:
            while True:
                await self.round()
                await asyncio.sleep(self._tools.settings.upkeep_interval)
        except DatabaseClosedError:
            return
        finally:
            await self._end()

    async def round(self) -> None:
        """Check every workspace of this home once, and start due changes; see `settled`."""
        now = self._tools.context.clock()
        try:
            await self._look(now)
        except DatabaseClosedError:
            raise
        except StorageError as e:
            log_storage_error(log, "Workspaces could not be checked", e)
        except ServiceError:
            log.exception("Workspaces could not be checked")

    async def settled(self) -> None:
        """Wait until the started changes have ended."""
        while self._doing:
            await asyncio.wait(self._doing.values())
            await asyncio.sleep(0)

    async def _look(self, now: datetime) -> None:
        read, home = self._tools.context.database.read, self._tools.context.home_id
        for row in await read(lambda c: active_workspaces(c, home)):
            idleness = Idleness(self._of(row.id).site, row, now)
            if await idleness.suspected():
                self._begin(row.id, now, self._rest(row, idleness))
        old = moment_text(now - UNCLAIMED_KEPT)
        if await read(lambda c: has_unclaimed(c, old)):
            await self._tools.context.database.write(lambda c: drop_unclaimed(c, old))
        unused, asleep = moment_text(now - DELETE_AFTER), moment_text(now - ARCHIVE_AFTER)
        for workspace_id in await read(lambda c: unused_since(c, home, unused)):
            self._begin(workspace_id, now, self._remove(workspace_id, unused))
        for workspace_id in await read(lambda c: asleep_since(c, home, asleep)):
            self._begin(workspace_id, now, self._archive(workspace_id))

    def _begin(self, workspace_id: str, now: datetime, work: Coroutine[Any, Any, None]) -> None:
        due = self._not_before.get(workspace_id)
        if workspace_id in self._doing or (due is not None and now < due):
            work.close()
            return
        task = asyncio.create_task(self._carry_out(workspace_id, now, work), name="upkeep")
        self._doing[workspace_id] = task
        task.add_done_callback(lambda _: self._doing.pop(workspace_id, None))

    async def _carry_out(
        self, workspace_id: str, now: datetime, work: Coroutine[Any, Any, None]
    ) -> None:
        self._not_before.pop(workspace_id, None)
        try:
            await work
        except DatabaseLostError:
            return  # the next check finds it due again
        except (ServiceError, SandboxError) as e:
            self._not_before[workspace_id] = now + AGAIN_AFTER
            log.warning("Workspace %s could not be put to rest: %s", workspace_id, e)

    async def _rest(self, row: WorkspaceRow, idleness: Idleness) -> None:
        supervisor = self._of(row.id)
        if row.lifecycle_policy == ARCHIVED_WHEN_DONE and idleness.done:
            async with self._packing:
                await supervisor.archive(idleness.confirmed)
        else:
            await supervisor.sleep(idleness.confirmed)

    async def _archive(self, workspace_id: str) -> None:
        async with self._packing:
            await self._of(workspace_id).archive()

    async def _remove(self, workspace_id: str, unused: str) -> None:
        if await self._delete(workspace_id, lambda c: is_unused(c, workspace_id, unused)):
            log.info("Workspace %s was deleted: nobody used it", workspace_id)

    async def _end(self) -> None:
        for task in self._doing.values():
            task.cancel()
        await asyncio.gather(*self._doing.values(), return_exceptions=True)


class Fleet:
    """The running workspaces of a service; started and closed with it."""

    def __init__(self, context: ServiceContext, settings: FleetSettings | None = None) -> None:
        self.settings = settings or FleetSettings()
        slots = asyncio.Semaphore(self.settings.preparing_at_once)
        saves = asyncio.Semaphore(self.settings.saved_at_once)
        self._tools = Dependencies(context, self.settings, slots, saves)
        self._supervisors: dict[str, WorkspaceManager] = {}
        self.upkeep = IdleReaper(self._tools, self.of, self.delete)
        self.pools = PoolKeeper(context, self.of, self.delete, self.settings.pool_interval)
        self._own: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Resume every workspace of this home that was preparing or active; return before they run.

        Engines of this start of the machine are found again, or started again when they died. Those
        of an earlier one have ended with it: their workspaces sleep, unless somebody is waiting for
        them, or a message is.
        """
        context = self._tools.context
        self._own.append(asyncio.create_task(self._clear(), name="removals"))
        now = moment_text(context.clock())
        for row in await context.event_log.write(lambda writer: self._sort_out(writer, now)):
            self.of(row.id).begin()
        self._own.append(asyncio.create_task(self.upkeep.run(), name="upkeep"))
        self._own.append(asyncio.create_task(self.pools.run(), name="warm pools"))

    async def close(self) -> None:
        """Disconnect from every engine; the engines continue to run."""
        for task in self._own:
            task.cancel()
        await asyncio.gather(*self._own, return_exceptions=True)
        await asyncio.gather(*(supervisor.close() for supervisor in self._supervisors.values()))
        self._supervisors.clear()

    def of(self, workspace_id: str) -> WorkspaceManager:
        """Return the manager of a workspace that is in the database."""
        if workspace_id not in self._supervisors:
            self._supervisors[workspace_id] = WorkspaceManager(workspace_id, self._tools)
        return self._supervisors[workspace_id]

    @property
    def managed(self) -> list[str]:
        """The workspaces that have a manager."""
        return list(self._supervisors)

    async def let_go(self, workspace_id: str) -> None:
        """Disconnect from a workspace that another service has taken over."""
        if (supervisor := self._supervisors.pop(workspace_id, None)) is not None:
            await supervisor.close()

    def permissions_changed(self) -> None:
        """Note that the permission policies of running workspaces may have changed."""
        for supervisor in self._supervisors.values():
            supervisor.site.permissions_changed.set()

    async def tell(self, workspace_id: str, message: str) -> None:
        """Append an error to the log of a workspace."""
        await append_error(self.of(workspace_id).site, message)

    async def delete(
        self, workspace_id: str, only_if: Callable[[Connection], bool] | None = None
    ) -> bool:
        """Remove a workspace; see `WorkspaceManager.delete`."""
        supervisor = self.of(workspace_id)
        try:
            return await supervisor.delete(only_if)
        finally:
            if supervisor.over:
                self._supervisors.pop(workspace_id, None)

    async def forget(self, workspace_id: str) -> None:
        """Remove the record of a workspace of a lost home; see `transitions.forget`."""
        await forget(self._tools.context, workspace_id)
        self._supervisors.pop(workspace_id, None)

    def _sort_out(self, writer: LogWriter, now: str) -> list[WorkspaceRow]:
        """Put those of an earlier start of the machine to sleep; return the others.

        A hook test has ended with the service that ran it: its workspace is not started again
        before it is removed.
        """
        staying: list[WorkspaceRow] = []
        for row in workspaces_in(writer.connection, self._tools.context.home_id, BUSY):
            if row.warm_state == WarmState.TESTING:
                continue
            if self._survived(row) or self._wanted(writer, row):
                staying.append(row)
            else:
                enter_sleeping(writer, row.id, now)
        return staying

    def _survived(self, row: WorkspaceRow) -> bool:
        return row.boot_id in (None, self.settings.boot_id)

    def _wanted(self, writer: LogWriter, row: WorkspaceRow) -> bool:
        return row.wake_wanted or has_undelivered(writer.connection, row.id)

    async def _clear(self) -> None:
        """Remove leftovers of every driver; those of one that is away when it answers again."""
        context = self._tools.context
        pending = dict(context.drivers.known)
        try:
            needed = await context.database.read(needed_repositories)
            while True:
                for name, driver in list(pending.items()):
                    try:
                        await driver.tidy(needed)
                    except EngineAwayError:
                        continue
                    except SandboxError:
                        log.exception("Leftovers of an earlier service could not be removed")
                    del pending[name]
                await finish_removals(context, without=pending)
                if not pending:
                    return
                await asyncio.sleep(self.settings.backoff[-1])
        except DatabaseClosedError:
            return
        except StorageError as e:
            log_storage_error(log, "Removals could not be finished", e)


async def _fleet(request: Request) -> Fleet:
    return parts(request).fleet


FleetDep = Annotated[Fleet, Depends(_fleet)]
"""Annotation of a route's parameter that takes the fleet."""
