"""All living replicas of one service."""

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends
from sqlalchemy import Connection

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.context import Context, ServiceContext
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.fleet.removal import finish_removals
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.fleet.site import Tools
from quarterdeck.service.fleet.supervisor import Supervisor
from quarterdeck.service.fleet.transitions import enter_sleeping
from quarterdeck.service.fleet.upkeep import Upkeep
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.messages import has_undelivered
from quarterdeck.service.records.repositories import needed_repositories
from quarterdeck.service.records.workspaces import BUSY, WorkspaceRow, workspaces_in
from quarterdeck.service.warm_pools.keeper import PoolKeeper
from quarterdeck.service.workspace_setup.states import WarmState

log = logging.getLogger(__name__)


class Fleet:
    """The `FleetLife` of a service: `context.fleet = Fleet(context)` before the application is built."""

    def __init__(self, context: ServiceContext, settings: FleetSettings | None = None) -> None:
        self.settings = settings or FleetSettings()
        slots = asyncio.Semaphore(self.settings.preparing_at_once)
        self._tools = Tools(context, self.settings, slots)
        self._supervisors: dict[str, Supervisor] = {}
        self.upkeep = Upkeep(self._tools, self.of, self.delete)
        self.pools = PoolKeeper(context, self.of, self.delete, self.settings.pool_interval)
        context.pools_changed = self.pools.nudge
        self._own: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Takes up every workspace of this home that was preparing or active; returns before they are found.

        Engines of this start of the machine are found again, or started again when they died. Those
        of an earlier one are gone with it: their workspaces sleep, unless somebody had asked for
        them, or a message waits.
        """
        context = self._tools.context
        self._own.append(asyncio.create_task(self._clear(), name="removals"))
        now = moment_text(context.clock())
        for row in await context.event_log.write(lambda writer: self._sort_out(writer, now)):
            self.of(row.id).begin()
        self._own.append(asyncio.create_task(self.upkeep.run(), name="upkeep"))
        self._own.append(asyncio.create_task(self.pools.run(), name="warm pools"))

    async def close(self) -> None:
        """Lets go of every engine, which run on."""
        for task in self._own:
            task.cancel()
        await asyncio.gather(*self._own, return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self._supervisors.values()))
        self._supervisors.clear()

    def of(self, workspace_id: str) -> Supervisor:
        """The supervisor of a workspace that is in the database."""
        if workspace_id not in self._supervisors:
            self._supervisors[workspace_id] = Supervisor(workspace_id, self._tools)
        return self._supervisors[workspace_id]

    async def delete(
        self, workspace_id: str, only_if: Callable[[Connection], bool] | None = None
    ) -> bool:
        """Removes a workspace; see `Supervisor.delete`."""
        supervisor = self.of(workspace_id)
        try:
            return await supervisor.delete(only_if)
        finally:
            if supervisor.over:
                self._supervisors.pop(workspace_id, None)

    def _sort_out(self, writer: LogWriter, now: str) -> list[WorkspaceRow]:
        """Puts those of an earlier start of the machine to sleep; returns the others.

        A test of a hook has ended with the service that ran it: what is left of it is not begun
        again before it is removed.
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
        except StorageError:
            log.exception("Removals could not be finished")


def fleet_of(context: ServiceContext) -> Fleet:
    """The fleet of a context."""
    assert isinstance(context.fleet, Fleet), "the application was built without a fleet"
    return context.fleet


def _fleet(context: Context) -> Fleet:
    return fleet_of(context)


FleetDep = Annotated[Fleet, Depends(_fleet)]
"""Annotation of a route's parameter that takes the fleet."""
