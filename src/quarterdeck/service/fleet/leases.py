"""Which service has a workspace that runs in a container, and its takeover from one that is gone.

A container dials `home_url`, behind which every service of the installation may be. A service that does
not have the workspace refuses the connection, and the container dials again. If its service is gone,
the one that was dialed takes the workspace over, provided that all of this is true:

- Its own container engine says that this very container, known by its token, is meant to run.
- The other service was not seen for `ALIVE`, by the clock of the database.
- The other service is not connected to the database: the lock of its home is free.

A container that does not run does not dial. Its workspace is taken over if the second and the third are
true, and the container engine has its volume, which has all of its work; on a Swarm, where a node that is
ready has it. One that sleeps or has failed is
when a request is to change it, and what is meant to run, or waits in a pool, when a service looks for
such (`sweep`). Commands that were left on the volume are ended first.

The service that lost a workspace may run on, and not know of it yet. What it does then has no effect:

| | is stopped by |
|---|---|
| events, and changes of the state that come with them | `LogWriter.append`: the row names another home |
| calls of the engine | the engine, which ends and refuses links of a lower `lease` |
| starting, stopping and removing the container | the row, which is read or written just before |
| removing the volume after packing | `packed_at`, which is written before and bars a takeover |

Archived workspaces, those without a volume within reach, and those that run as processes stay with their
service: what is needed to start them is in its directory alone. Saves there are never used.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from time import monotonic

from sqlalchemy import Connection, select

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import PROCESS
from quarterdeck.sandboxes.switchboard import Switchboard
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import take_home_lock
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.db.tables import workspaces
from quarterdeck.service.environments.warm_pool_rows import WarmState
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.http_protocol import LOG_SECONDS
from quarterdeck.service.ownership import ALIVE, BEAT_SECONDS
from quarterdeck.service.replicas.rows import (
    BUSY,
    WorkspaceRow,
    change_workspace,
    find_workspace,
    removals_without,
    stopped_elsewhere,
)
from quarterdeck.service.system_rows import all_services, find_service, owner_of
from quarterdeck.wire.git_state import EngineRepository

SWEEP_BEATS = 6
"""What does not dial is looked for every so many beats."""

_Check = Callable[[WorkspaceRow], bool]

log = logging.getLogger(__name__)


class Leases:
    """Takes workspaces over, and lets go of those that another service has taken over."""

    def __init__(self, context: ServiceContext, switchboard: Switchboard, fleet: Fleet) -> None:
        self._context = context
        self.switchboard = switchboard
        self._fleet = fleet
        self._taking = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._removed: set[str] = set()
        """Deleted workspaces of other services whose container and volume are gone."""
        self._noted = -LOG_SECONDS

    def start(self) -> None:
        """Look regularly for workspaces that were taken over, and that are to be."""
        if self._context.database.shared:
            self._looking = asyncio.create_task(self._look(), name="leases")

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def note_refused(self, workspace_id: str) -> None:
        """Log that a container was not admitted, now and then: anybody may dial."""
        if (now := monotonic()) - self._noted >= LOG_SECONDS:
            self._noted = now
            log.info("A container of %s is refused: another one is meant to run", workspace_id)

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
        async with self._taking:
            if await self.holds(workspace_id):
                return True
            if not await self._take(workspace_id, _runs, token):
                return False
        self._fleet.of(workspace_id).begin()
        return True

    async def take_stopped(self, workspace_id: str) -> str | None:
        """Take a workspace over whose service is gone and whose container does not run.

        Returns None when this service has it now, else the reason to show to the person.

        Raises:
            SandboxError: the container engine does not answer, or the directory cannot be written.
            StorageError: the database cannot be read or written.
        """
        async with self._taking:
            if await self.holds(workspace_id):
                return None
            row = await self._context.database.read(lambda c: self._abandoned(c, workspace_id))
            if row is None:
                return ""
            if row.packed_at is not None:
                return f"Its archive is archives/{row.id}.tar.gz in the directory of that service."
            if not await self.switchboard.has_files(row.id):
                return (
                    "No volume of it is within reach, and its last save is "
                    f"saves/{row.id}.git in the directory of that service."
                )
            driver = self._context.drivers.named(row.driver)
            if _runs(row) and await driver.alive(row.id):
                return "Its container runs, and is taken over when it connects. Try again shortly."
            if not await self._take(row.id, lambda now: _is_same(row, now), None):
                return ""
            with _logged(row.id):
                await driver.stop(row.id)  # commands that were left on its volume
        if row.status in BUSY and row.warm_state != WarmState.TESTING:
            self._fleet.of(row.id).begin()
        if row.warm_state is not None:
            self._fleet.pools.nudge()
        return None

    async def sweep(self) -> None:
        """Take over what is meant to run and does not, and remove what others have left on the engine.

        Raises:
            StorageError: the database cannot be read or written.
        """
        chosen = self._context.drivers.chosen
        stopped, removals = await self._context.database.read(self._left)
        for workspace_id in stopped:
            with _logged(workspace_id):
                await self.take_stopped(workspace_id)
        for workspace_id, driver in removals:
            if driver == chosen and workspace_id not in self._removed:
                with _logged(workspace_id):
                    await self._context.drivers.named(driver).destroy(workspace_id)
                    self._removed.add(workspace_id)  # its note stays, for the files of its home

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
        for beats in count(1):
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self.let_go()
                if beats % SWEEP_BEATS == 0:
                    await self.sweep()
            except DatabaseClosedError:
                return
            except StorageError as e:
                log_storage_error(log, "Workspaces that were taken over could not be looked for", e)

    def _left(self, connection: Connection) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the stopped workspaces and the unfinished removals of services that are gone."""
        alive = [one.home_id for one in all_services(connection, ALIVE) if one.alive]
        homes = [self._context.home_id, *alive]
        stopped = stopped_elsewhere(connection, homes, self._context.drivers.chosen)
        return stopped, removals_without(connection, homes)

    async def _take(self, workspace_id: str, fits: _Check, token: str | None) -> bool:
        """Take over an abandoned workspace whose row fits; the caller holds `_taking`."""
        database = self._context.database
        row = await database.read(lambda c: self._abandoned(c, workspace_id))
        if row is None or not fits(row):
            return False
        row = await database.write(lambda c: self._released(c, workspace_id, fits))
        if row is None:
            return False
        clones = [
            EngineRepository.model_validate(one) for one in json.loads(row.clones_json or "[]")
        ]
        await self.switchboard.adopt(workspace_id, token, clones)
        if not await database.write(lambda c: self._change(c, workspace_id, fits)):
            return False
        log.warning("Workspace %s is taken over from home %s", workspace_id, row.home_id)
        return True

    def _abandoned(self, connection: Connection, workspace_id: str) -> WorkspaceRow | None:
        """Return a workspace that could be taken over, if its service was not seen for long."""
        row = find_workspace(connection, workspace_id)
        if row is None or row.driver != self._context.drivers.chosen or row.clones_json is None:
            return None
        service = find_service(connection, row.home_id, ALIVE)
        return None if service is not None and service.alive else row

    def _released(
        self, connection: Connection, workspace_id: str, fits: _Check
    ) -> WorkspaceRow | None:
        """Return the same if its service cannot write either, until the end of the transaction."""
        row = self._abandoned(connection, workspace_id)
        if row is None or not fits(row) or not take_home_lock(connection, str(row.home_id)):
            return None
        return row

    def _change(self, connection: Connection, workspace_id: str, fits: _Check) -> bool:
        row = self._released(connection, workspace_id, fits)
        if row is None:
            return False
        columns = {"home_id": self._context.home_id, "lease": row.lease + 1}
        change_workspace(connection, workspace_id, **columns)
        return True


def _runs(row: WorkspaceRow) -> bool:
    """Return whether the container of a workspace is meant to run."""
    return row.status in BUSY and row.warm_state != WarmState.TESTING


def _is_same(row: WorkspaceRow, now: WorkspaceRow) -> bool:
    """Return whether nothing has happened to a workspace since its container was looked for."""
    return (row.home_id, row.lease, row.status, row.packed_at) == (
        now.home_id,
        now.lease,
        now.status,
        now.packed_at,
    )


@contextmanager
def _logged(workspace_id: str) -> Generator[None]:
    """Log that something about a workspace is tried again later."""
    try:
        yield
    except SandboxError as e:
        log.warning("What was left of workspace %s stays for now: %s", workspace_id, e)


def _taken(connection: Connection, home_id: str, among: list[str]) -> list[str]:
    """Return the workspaces that another home has taken over."""
    statement = select(workspaces.c.id).where(
        workspaces.c.id.in_(among), workspaces.c.driver != PROCESS, workspaces.c.home_id != home_id
    )
    return list(connection.execute(statement).scalars())
