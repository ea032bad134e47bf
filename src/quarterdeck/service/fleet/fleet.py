"""The active replicas of one service."""

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.chats.rows import has_undelivered
from quarterdeck.service.context import ServiceContext, parts
from quarterdeck.service.environments.warm_pool_rows import WarmState
from quarterdeck.service.environments.warm_pools import PoolKeeper
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.fleet.idle_reaper import IdleReaper
from quarterdeck.service.fleet.runtime import Dependencies
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.fleet.transitions import enter_sleeping, finish_removals, forget
from quarterdeck.service.fleet.workspace_manager import WorkspaceManager
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import BUSY, WorkspaceRow, workspaces_in
from quarterdeck.service.repositories.rows import needed_repositories
from quarterdeck.service.retry import log_storage_error

log = logging.getLogger(__name__)


class Fleet:
    """The running workspaces of a service; started and closed with it."""

    def __init__(self, context: ServiceContext, settings: FleetSettings | None = None) -> None:
        self.settings = settings or FleetSettings()
        slots = asyncio.Semaphore(self.settings.preparing_at_once)
        self._tools = Dependencies(context, self.settings, slots)
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
        await asyncio.gather(*(one.close() for one in self._supervisors.values()))
        self._supervisors.clear()

    def of(self, workspace_id: str) -> WorkspaceManager:
        """Return the manager of a workspace that is in the database."""
        if workspace_id not in self._supervisors:
            self._supervisors[workspace_id] = WorkspaceManager(workspace_id, self._tools)
        return self._supervisors[workspace_id]

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
        try:
            context = self._tools.context
            await context.sandboxes.tidy(await context.database.read(needed_repositories))
            await finish_removals(context)
        except SandboxError:
            log.exception("What an earlier service left could not be cleared away")
        except DatabaseClosedError:
            return
        except StorageError as e:
            log_storage_error(log, "Removals could not be finished", e)


async def _fleet(request: Request) -> Fleet:
    return parts(request).fleet


FleetDep = Annotated[Fleet, Depends(_fleet)]
"""Annotation of a route's parameter that takes the fleet."""
