"""Tells the other services over the database where this one is reached, again and again."""

import asyncio
import logging
import socket
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from uuid import UUID

from sqlalchemy import Connection

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.records.services import (
    all_services,
    announce,
    take_over_deliveries,
)
from quarterdeck.wire.services import Service

BEAT_SECONDS = 5.0
ALIVE = timedelta(seconds=20)
"""A service that was not seen for longer is not asked any more."""
INHERITED = timedelta(minutes=10)
"""Webhook calls that wait at a service that was not seen for longer are made by another."""

UNIX = "unix:"

log = logging.getLogger(__name__)


class Presence:
    """One service's sign of life; nothing to do over a database that it has to itself."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Is announced when this returns.

        Raises:
            StorageError: the database cannot be written.
        """
        if self._context.address is None or not self._context.database.shared:
            return
        await self._announce(self._context.address)
        self._beating = asyncio.create_task(self._beat(self._context.address), name="presence")

    async def close(self) -> None:
        """Falls silent."""
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
                log.error("The other services could not be told of this one: %s", e)

    async def _announce(self, url: str) -> None:
        own = self._context.home_id

        def run(connection: Connection) -> int:
            announce(connection, own, url)
            return take_over_deliveries(connection, own, INHERITED)

        if await self._context.database.write(run):
            self._context.webhooks_stored()


async def services_known(context: ServiceContext) -> list[Service]:
    """Every service over the database, this one first.

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
    """Where others reach a service that listens there: its first TCP address, else its socket."""
    for address in bound:
        if not isinstance(address, Path):
            return _url(*address)
    return f"{UNIX}{bound[0]}"


def _url(host: str, port: int) -> str:
    try:
        everywhere = ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    host = socket.gethostname() if everywhere else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
