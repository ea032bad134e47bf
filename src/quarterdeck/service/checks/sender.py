"""Tells source hosts how checks stand, and keeps telling one that cannot be reached.

What a call says is read from the database just before it, and no two calls about the same record
of a host are made at a time, by whatever service; so an older state never replaces a newer one. A
check is owed to its host until the host has taken it, in the row itself: a service that is killed
begins where it was.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.checks import delivery, host_a, host_b
from quarterdeck.service.checks.calls import HostError
from quarterdeck.service.checks.heads import Head, head_at
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import DatabaseClosedError
from quarterdeck.service.hosts.settings import HOST_A
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.calling import open_client
from quarterdeck.service.outward.flights import Flights
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.checks import due_checks, find_check, next_due_check

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckSettings:
    """Limits of telling hosts; times in seconds."""

    limit: float = 10.0
    """A host that has not answered within this has not taken a call."""
    opening: float = 3.0
    """A run that starts waits so long for its host's own record."""
    at_once: int = 8
    longest_wait: float = 10.0
    """The database is looked at after this at the latest."""


class CheckSender:
    """The one owner of calls to source hosts; started and closed with the application."""

    def __init__(self, context: ServiceContext, settings: CheckSettings | None = None) -> None:
        self._context = context
        self._settings = settings or CheckSettings()
        self._flights = Flights("check")
        self._client: httpx.AsyncClient | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins, first with what an earlier service left."""
        self._task = asyncio.create_task(self._run(), name="checks")

    def nudge(self) -> None:
        """A check may have changed."""
        self._flights.nudge()

    async def tell(self, check_id: str) -> None:
        """Tells the host now, and waits for it, but not for long."""
        row = await self._context.database.read(lambda c: find_check(c, check_id))
        now = moment_text(self._context.clock())
        if row is None or row["next_at"] is None or row["next_at"] > now:
            return
        flight = self._flights.get(_record_of(row)) or self._begin(row)
        await asyncio.wait({flight}, timeout=self._settings.opening)

    async def head_of(self, host: str, repository: str, number: int) -> Head:
        """Asks a host where the head of a pull request stands, and waits for it, but not for long.

        Raises:
            HostError: it could not be asked.
        """
        settings = self._context.hosts.of(host)
        try:
            async with asyncio.timeout(self._settings.opening):
                return await head_at(self._caller(), host, settings, repository, number)
        except TimeoutError as e:
            raise HostError("it did not answer in time") from e

    async def turn(self) -> None:
        """Tells what is due now, and waits until that was tried."""
        while await self._begin_due(moment_text(self._context.clock())) or len(self._flights):
            await self._flights.landed()

    async def close(self) -> None:
        """Ends; what was not told is told by whoever comes next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._flights.close()
        if self._client is not None:
            await self._client.aclose()

    async def _run(self) -> None:
        try:
            while True:
                self._flights.look()
                now = self._context.clock()
                await until_stored(partial(self._begin_due, moment_text(now)))
                # With the same moment: what became due since is not overlooked.
                await self._wait(now)
        except DatabaseClosedError:
            return

    async def _begin_due(self, now: str) -> int:
        """Begins as many calls as there is room for; returns how many."""
        begun = 0
        most = self._settings.at_once + len(self._flights)
        database, home = self._context.database, self._context.home_id
        for check_id in await database.read(lambda c: due_checks(c, home, now, most)):
            row = await database.read(partial(find_check, check_id=check_id))
            room = len(self._flights) < self._settings.at_once
            if room and row is not None and _record_of(row) not in self._flights:
                self._begin(row)
                begun += 1
        return begun

    def _begin(self, row: RowMapping) -> "asyncio.Task[None]":
        return self._flights.begin(_record_of(row), self._bring(row["id"]))

    async def _wait(self, now: datetime) -> None:
        soonest = await until_stored(
            lambda: self._context.database.read(lambda c: next_due_check(c, moment_text(now)))
        )
        await self._flights.wait(now, soonest, self._settings.longest_wait)

    async def _bring(self, check_id: str) -> None:
        """One try to tell the host the newest state."""
        database = self._context.database
        try:
            row = await until_stored(lambda: database.write(self._begin_call(check_id)))
            if row is None:
                return
            try:
                ref = await self._call(row)
            except HostError as e:
                await self._failed(row, e)
                return
            except Exception as e:
                log.exception("Telling of check %s broke off", row["id"])
                await self._failed(row, HostError(type(e).__name__))
                return
            await until_stored(lambda: database.write(lambda c: delivery.taken(c, row, ref)))
        except DatabaseClosedError:
            return

    def _begin_call(self, check_id: str) -> Callable[[Connection], RowMapping | None]:
        home, now = self._context.home_id, self._context.clock()
        return lambda connection: delivery.begin(connection, check_id, home, now)

    async def _failed(self, row: RowMapping, error: HostError) -> None:
        now = self._context.clock()
        database = self._context.database
        over = await until_stored(lambda: database.write(lambda c: delivery.not_taken(c, row, now)))
        if over:
            log.warning("%s is not told of check %s: %s", row["host"], row["id"], error)
        else:
            log.info("%s did not take check %s: %s", row["host"], row["id"], error)

    async def _call(self, row: RowMapping) -> str | None:
        settings = self._context.hosts.of(row["host"])
        if not settings.writable:
            raise HostError("it is not configured any more")
        tell = host_a.tell if row["host"] == HOST_A else host_b.tell
        try:
            async with asyncio.timeout(self._settings.limit):
                return await tell(self._caller(), settings, row)
        except TimeoutError as e:
            raise HostError("it did not answer in time") from e

    def _caller(self) -> "httpx.AsyncClient":
        if self._client is None:
            self._client = open_client(self._settings.limit)
        return self._client


def _record_of(row: RowMapping) -> str:
    """Names the host's record: of host B, what stands for all checks of a commit and a name."""
    if row["host"] == HOST_A:
        return row["id"]
    return f"{row['host']} {row['repository']} {row['head_sha']} {row['name']}"
