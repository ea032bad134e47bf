"""Which service has a workspace that runs in a container, and its takeover from one that is gone.

A container dials `home_url`, behind which every service of the installation may be. A service that does
not have the workspace refuses the connection, and the container dials again. If its service is gone,
the one that was dialed takes the workspace over, provided that all of this is true:

- Its own container engine says that this very container, known by its token, is meant to run.
- The other service was not seen for `ALIVE`, by the clock of the database.
- The other service is not connected to the database: the lock of its home is free.

The service that lost a workspace may run on, and not know of it yet. What it does then has no effect:

| | is stopped by |
|---|---|
| events, and changes of the state that come with them | `LogWriter.append`: the row names another home |
| calls of the engine | the engine, which ends and refuses links of a lower `lease` |
| starting, stopping and removing the container | the row, which is read or written just before |

Sleeping and archived workspaces, those without a container, and those that run as processes stay with
their service.
"""

import asyncio
import json
import logging

from sqlalchemy import Connection, select

from quarterdeck.sandboxes.port import PROCESS
from quarterdeck.sandboxes.switchboard import Switchboard
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import take_home_lock
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.db.tables import workspaces
from quarterdeck.service.environments.warm_pool_rows import WarmState
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.ownership import ALIVE, BEAT_SECONDS
from quarterdeck.service.replicas.rows import BUSY, WorkspaceRow, change_workspace, find_workspace
from quarterdeck.service.system_rows import find_service, owner_of
from quarterdeck.wire.git_state import EngineRepository

log = logging.getLogger(__name__)


class Leases:
    """Takes workspaces over, and lets go of those that another service has taken over."""

    def __init__(self, context: ServiceContext, switchboard: Switchboard, fleet: Fleet) -> None:
        self._context = context
        self.switchboard = switchboard
        self._fleet = fleet
        self._taking = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look regularly for workspaces that another service has taken over."""
        if self._context.database.shared:
            self._looking = asyncio.create_task(self._look(), name="leases")

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def holds(self, workspace_id: str) -> bool:
        """Return whether no other service has a workspace.

        Raises:
            StorageError: the database cannot be read.
        """
        if not self._context.database.shared:
            return True
        owner = await self._context.database.read(lambda c: owner_of(c, workspace_id))
        return owner is None or owner.home_id in (None, self._context.home_id)

    async def take_over(self, workspace_id: str, token: str) -> bool:
        """Take a workspace over if its service is gone; return whether this service has it now.

        Call when the container with this token was admitted by the switchboard.

        Raises:
            SandboxError: the installation's directory cannot be written.
            StorageError: the database cannot be read or written.
        """
        database = self._context.database
        async with self._taking:
            if await self.holds(workspace_id):
                return True
            if await database.read(lambda c: self._abandoned(c, workspace_id)) is None:
                return False
            row = await database.write(lambda c: self._released(c, workspace_id))
            if row is None:
                return False
            clones = [
                EngineRepository.model_validate(one) for one in json.loads(row.clones_json or "[]")
            ]
            await self.switchboard.adopt(workspace_id, token, clones)
            if not await database.write(lambda c: self._take(c, workspace_id)):
                return False
        log.warning("Workspace %s is taken over from home %s", workspace_id, row.home_id)
        self._fleet.of(workspace_id).begin()
        return True

    async def let_go(self) -> None:
        """Disconnect from workspaces that another service has taken over, and end their streams.

        Raises:
            StorageError: the database cannot be read.
        """
        managed, home = self._fleet.managed, self._context.home_id
        for workspace_id in await self._context.database.read(lambda c: _taken(c, home, managed)):
            log.warning("Another service has taken over workspace %s", workspace_id)
            await self._fleet.let_go(workspace_id)
            self.switchboard.end(workspace_id)
            self._context.event_log.drop(workspace_id)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self.let_go()
            except DatabaseClosedError:
                return
            except StorageError as e:
                log_storage_error(log, "Workspaces that were taken over could not be looked for", e)

    def _abandoned(self, connection: Connection, workspace_id: str) -> WorkspaceRow | None:
        """Return a workspace that may be taken over, if its service was not seen for long."""
        row = find_workspace(connection, workspace_id)
        if (
            row is None
            or row.driver != self._context.drivers.chosen
            or row.status not in BUSY
            or row.warm_state == WarmState.TESTING
            or row.clones_json is None
        ):
            return None
        service = find_service(connection, row.home_id, ALIVE)
        return None if service is not None and service.alive else row

    def _released(self, connection: Connection, workspace_id: str) -> WorkspaceRow | None:
        """Return the same if its service cannot write either, until the end of the transaction."""
        row = self._abandoned(connection, workspace_id)
        return row if row and take_home_lock(connection, str(row.home_id)) else None

    def _take(self, connection: Connection, workspace_id: str) -> bool:
        row = self._released(connection, workspace_id)
        if row is None:
            return False
        columns = {"home_id": self._context.home_id, "lease": row.lease + 1}
        change_workspace(connection, workspace_id, **columns)
        return True


def _taken(connection: Connection, home_id: str, among: list[str]) -> list[str]:
    """Return the workspaces that another home has taken over."""
    statement = select(workspaces.c.id).where(
        workspaces.c.id.in_(among), workspaces.c.driver != PROCESS, workspaces.c.home_id != home_id
    )
    return list(connection.execute(statement).scalars())
