"""Puts to rest what nobody uses, and keeps the policies of replicas (INTERFACE 3, Life).

| replica | after | becomes |
|---|---|---|
| active, nothing going on | its auto-stop time, by default 60 minutes | sleeping |
| active, `sleep_when_done` | the turn's end, with an empty queue | sleeping |
| active, `archive_when_done` | the same | archived |
| sleeping | 7 days | archived |
| sleeping, archived, error, `delete_after_inactivity` | 24 hours | deleted |
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.errors import DatabaseClosedError, ServiceError
from quarterdeck.service.fleet.idleness import ARCHIVED_WHEN_DONE, Idleness
from quarterdeck.service.fleet.site import Tools
from quarterdeck.service.fleet.supervisor import Supervisor
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.rest import (
    active_workspaces,
    asleep_since,
    is_unused,
    unused_since,
)
from quarterdeck.service.records.workspaces import WorkspaceRow

ARCHIVE_AFTER = timedelta(days=7)
DELETE_AFTER = timedelta(hours=24)
AGAIN_AFTER = timedelta(hours=1)
"""What failed, for instance on a full disk, is left alone for so long."""

log = logging.getLogger(__name__)


class Upkeep:
    """The one owner of everything that is done to workspaces without being asked for."""

    def __init__(
        self,
        tools: Tools,
        of: Callable[[str], Supervisor],
        delete: Callable[[str, Callable[[Connection], bool]], Coroutine[Any, Any, bool]],
    ) -> None:
        self._tools = tools
        self._of = of
        self._delete = delete
        self._doing: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, datetime] = {}
        self._packing = asyncio.Semaphore(1)

    async def run(self) -> None:
        """Looks around for ever."""
        try:
            while True:
                await self.round()
                await asyncio.sleep(self._tools.settings.upkeep_interval)
        except DatabaseClosedError:
            return
        finally:
            await self._end()

    async def round(self) -> None:
        """Looks at every workspace of this home once, and begins what is due. `settled` waits for that."""
        now = self._tools.context.clock()
        try:
            await self._look(now)
        except DatabaseClosedError:
            raise
        except ServiceError:
            log.exception("Workspaces could not be looked at")

    async def settled(self) -> None:
        """Waits until what was begun has ended."""
        while self._doing:
            await asyncio.wait(self._doing.values())
            await asyncio.sleep(0)

    async def _look(self, now: datetime) -> None:
        read, home = self._tools.context.database.read, self._tools.context.home_id
        for row in await read(lambda c: active_workspaces(c, home)):
            idleness = Idleness(self._of(row.id).site, row, now)
            if await idleness.suspected():
                self._begin(row.id, now, self._rest(row, idleness))
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
