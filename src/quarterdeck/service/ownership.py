"""Which service of an installation a replica belongs to, and which services are alive.

Ownership of workspaces, when several services share a database.

A service is a home: its sandboxes, archives and mirrors are there, and the home's id is the owner
in the rows. Ownership changes only by a takeover (`service.fleet.leases`). The work is
divided like this:

| work | done by |
|---|---|
| finding engines again, putting to rest, deleting unused ones, unfinished removals, hook tests | the owner of the workspace |
| requests that name a workspace | its owner; another service passes them on (`service.forwarding`) |
| events: their streams, notifications, webhooks | the service that stored them, which is the owner |
| creates | the service that was called, which becomes the owner; with containers, one that has a prepared workspace, if the one that was called has none |
| warm pools | with containers all services together: `target_size`, and the reported state of a pool, apply to the installation, and a prepared container is taken over like any other. Without, each service for the creates it serves: a prepared workspace cannot change its host, and both apply to one service. The pause after a failure applies to all |
| the limit of active workspaces | all services together, in the transaction that makes one active |
| taking over a workspace whose service is gone | the service that its container has dialed; without a container, the service of the request that is to change it, or the first that looks for what is meant to run |
| removing the container and volume of a deleted workspace whose service is gone | any service with that container engine; the owner removes the rest if it comes back |
| automations: fires, and runs that make a replica | any one service, decided in the transaction that marks the run; it becomes the owner |
| a run that joins another in its replica | the owner of that replica, when it is alive |
| ending runs that take too long, or with an unanswered question | the owner of their replica, whose clock their times are of; those of a service that was not seen for long are ended by any |
| stopping the agent of a run that was canceled, timed out or superseded | the owner of its replica |
| removing uploads of uncommitted changes that nobody used | each service, in the rows alone |
| removing old runs and receipts | each service, in the rows alone |
| waiting webhook calls, also of deleted workspaces | the owner of the workspace; those of a service that was not seen for long go to the first that notices |
| reporting a check to a source host | any one service, decided in the transaction that starts the call (`checks.sync_worker`) |
| keys, users, environments, credentials | any service, in the rows alone |
| removing the record of a workspace whose home is lost | any service, once the owner was not seen for `ALIVE`; the owner removes the files if it comes back |
| mirrors of repositories | each service makes its own when a workspace needs it |
"""

import asyncio
import logging
import socket
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import Connection, delete, false, select, update

from quarterdeck.local.home import Home
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.db.tables import settings, webhook_deliveries, workspaces
from quarterdeck.service.errors import DatabaseClosedError, HomeUnusableError, StorageError
from quarterdeck.service.listeners import is_loopback
from quarterdeck.service.previews.rows import PORT_SETTING, kept_port, port_setting
from quarterdeck.service.replicas.rows import NOTE, WorkspaceRow
from quarterdeck.service.system_rows import all_services, announce, take_over_deliveries
from quarterdeck.service.vault import read_key_file, write_key_file
from quarterdeck.wire.account import Service

_LOST_ID = (
    "Restore the right one: the replicas of this home are known by it. If it is lost, remove the file: a "
    "home with a database of its own then gets a new id, and keeps its replicas."
)


def home_id(home: Home) -> str:
    """Return the home's own id, created at its first start; call with the home's lock held.

    Raises:
        HomeUnusableError: the file cannot be read or written, or holds no id.
    """
    text = read_key_file(home.id, _LOST_ID)
    if text is None:
        text = str(uuid4())
        write_key_file(home.id, text)
    return _checked(home.id, text)


def adopt(connection: Connection, own: str, alone: bool = False) -> None:
    """Assign rows without an owner to a home: those stored before homes had ids.

    A home that is `alone` with its database owns all rows, also when the file with its id was lost.
    """
    for table in (workspaces, webhook_deliveries):
        theirs = table.c.home_id != own if alone else false()
        missing = table.c.home_id.is_(None) | theirs
        connection.execute(update(table).where(missing).values(home_id=own))
    noted = settings.c.value != own if alone else settings.c.value == ""
    notes = settings.c.name.startswith(NOTE) & noted
    connection.execute(update(settings).where(notes).values(value=own))
    name = settings.c.name
    port = name.startswith(PORT_SETTING) if alone else name == PORT_SETTING
    if (
        stored := connection.execute(select(name).where(port, name != port_setting(own)))
        .scalars()
        .all()
    ):
        connection.execute(delete(settings).where(name.in_(stored[1:])))
        if kept_port(connection, own) is None:
            connection.execute(
                update(settings).where(name == stored[0]).values(name=port_setting(own))
            )


def _checked(path: Path, text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as e:
        raise HomeUnusableError(f"The file {path} holds no id. {_LOST_ID}") from e


BEAT_SECONDS = 5.0
ALIVE = timedelta(seconds=20)
"""A service that was not seen for longer is not called any more."""
INHERITED = timedelta(minutes=10)
"""Waiting webhook calls of a service that was not seen for longer are made, and its runs ended, by
another."""

UNIX = "unix:"

log = logging.getLogger(__name__)


class ServiceHeartbeat:
    """Announces one service; does nothing for a database that is not shared."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Announce the service; it is announced when this returns.

        Raises:
            StorageError: the database cannot be written.
        """
        if self._context.address is None or not self._context.database.shared:
            return
        await self._announce(self._context.address)
        self._beating = asyncio.create_task(self._beat(self._context.address), name="presence")

    async def close(self) -> None:
        """Stop announcing the service."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    async def _beat(self, url: str) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self._announce(url)
            except DatabaseClosedError:
                return
            except StorageError as e:
                log_storage_error(log, "This service could not be announced to the others", e)

    async def _announce(self, url: str) -> None:
        own = self._context.home_id

        def run(connection: Connection) -> int:
            announce(connection, own, url)
            return take_over_deliveries(connection, own, INHERITED)

        if await self._context.database.write(run):
            self._context.webhooks_stored.set()


def unreachable_since(
    connection: Connection, own: str, rows: Sequence[WorkspaceRow]
) -> dict[str, str]:
    """Return when the services that no longer answer were last seen, by workspace.

    A home that never announced itself counts as lost since the workspace was created.
    """
    elsewhere = [row for row in rows if row.home_id not in (None, own)]
    if not elsewhere:
        return {}
    known = {announced.home_id: announced for announced in all_services(connection, ALIVE)}
    last_seen: dict[str, str] = {}
    for row in elsewhere:
        service = known.get(str(row.home_id))
        if service is None:
            last_seen[row.id] = row.created_at
        elif not service.alive:
            last_seen[row.id] = service.seen_at
    return last_seen


async def services_known(context: ServiceContext) -> list[Service]:
    """Return every service of the database, this one first.

    Raises:
        StorageError: the database cannot be read.
    """
    own = Service(home_id=UUID(context.home_id), own=True, alive=True, url=context.address)
    if not context.database.shared:
        return [own]
    rows = await context.database.read(lambda c: all_services(c, ALIVE))
    others = [
        Service(
            home_id=UUID(row.home_id),
            own=False,
            alive=row.alive,
            url=row.url,
            seen_at=datetime.fromisoformat(row.seen_at),
        )
        for row in rows
        if row.home_id != context.home_id
    ]
    return [own, *others]


def address_of(bound: list[Path | tuple[str, int]]) -> str:
    """Return the URL at which others reach a service with these listeners.

    Its first TCP address that other machines reach, else its first TCP address, else its socket.
    """
    over_tcp = [address for address in bound if not isinstance(address, Path)]
    for host, port in sorted(over_tcp, key=lambda address: is_loopback(address[0])):
        return _url(host, port)
    return f"{UNIX}{bound[0]}"


def _url(host: str, port: int) -> str:
    try:
        everywhere = ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    host = socket.gethostname() if everywhere else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
