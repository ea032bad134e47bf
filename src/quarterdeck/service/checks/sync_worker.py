"""Reports the states of checks to source hosts, and retries while one cannot be reached.

The state is read from the database right before a call, and no two services call about the same
record of a host at a time; so an older state never replaces a newer one. The row of a check says
that it is unsent until the host has accepted it: a service that is killed continues where it was.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.prompts import Ticket, TriggerEvent
from quarterdeck.service.checks import service
from quarterdeck.service.checks.calls import HostError, host_of, wants_check
from quarterdeck.service.checks.hosts import report_to_host_a, report_to_host_b
from quarterdeck.service.checks.rows import due_checks, find_check, next_due_check
from quarterdeck.service.checks.service import (
    TOKEN_BYTES,
    CheckOccasion,
    Head,
    OpenedCheck,
    fetch_ref_at,
    head_at,
    open_known,
)
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.errors import DatabaseClosedError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.hosts.settings import HOST_A
from quarterdeck.service.http_client import open_client
from quarterdeck.service.notifications.sender import InflightTasks
from quarterdeck.service.repositories.rows import list_repositories

if TYPE_CHECKING:
    import httpx


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckSettings:
    """Limits of calls to hosts; times in seconds."""

    limit: float = 10.0
    """A call that is not answered within this has failed."""
    opening: float = 3.0
    """How long a run that starts waits for its host's own record."""
    at_once: int = 8
    longest_wait: float = 10.0
    """The database is checked after this at the latest."""


class CheckSender:
    """The one owner of calls to source hosts; started and closed with the application."""

    def __init__(self, context: ServiceContext, settings: CheckSettings | None = None) -> None:
        self._context = context
        self.settings = settings or CheckSettings()
        self._flights = InflightTasks("check", context.checks_changed)
        self._client: httpx.AsyncClient | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start, first with the calls that an earlier service left."""
        self._task = asyncio.create_task(self._run(), name="checks")

    async def open_for_run(
        self, execution: RowMapping, automation: RowMapping, occasion: TriggerEvent
    ) -> OpenedCheck | None:
        """Open the check of a run, or find the one of an earlier attempt; None when it has none.

        The host gets a moment to report the pull request's head, if it is unknown, and to create
        its own record, whose id the agent then gets. A host that does not answer delays nothing:
        the check keeps an id of ours, and is reported later.
        """
        if not wants_check(automation, occasion):
            return None
        known = await self._with_head(automation["organization_id"], occasion)
        check_id = await self._context.database.write(
            lambda c: open_known(c, self._context, execution["id"], automation, known)
        )
        if check_id is None:
            return None
        await self.report_now(check_id)
        row = await self._context.database.read(lambda c: find_check(c, check_id))
        if row is None:
            return None
        ticket = Ticket(
            row["host_ref"] or row["check_run_id"], secrets.token_urlsafe(TOKEN_BYTES), row["name"]
        )
        return OpenedCheck(check_id, ticket, known.occasion)

    async def _with_head(self, organization_id: str, occasion: TriggerEvent) -> CheckOccasion:
        """Read from the host the head that an occasion does not name; it may change later."""
        about = occasion.pull_request
        if about is None or about.head_sha is not None:
            return CheckOccasion(occasion)
        repositories = await self._context.database.read(
            lambda c: list_repositories(c, organization_id)
        )
        host = host_of(self._context.hosts, occasion, about, repositories)
        if host is None:
            return CheckOccasion(occasion)
        head: Head = {"fetch_ref": fetch_ref_at(host[0], about.number)}
        why_not = None
        try:
            head = await self.head_of(*host, about.number)
        except HostError as e:
            why_not = f"{host[0]} was asked for the head of {host[1]}#{about.number}: {e}."
            log.warning("A check is kept here. %s", why_not)
        missing = {name: text for name, text in head.items() if getattr(about, name) is None}
        return CheckOccasion(
            replace(occasion, pull_request=about.model_copy(update=missing)), why_not
        )

    async def report_now(self, check_id: str) -> None:
        """Report to the host now, and wait for it for a short time."""
        row = await self._context.database.read(lambda c: find_check(c, check_id))
        now = moment_text(self._context.clock())
        if row is None or row["next_at"] is None or row["next_at"] > now:
            return
        flight = self._flights.get(_record_of(row)) or self._begin(row)
        await asyncio.wait({flight}, timeout=self.settings.opening)

    async def head_of(self, host: str, repository: str, number: int) -> Head:
        """Read the head of a pull request from its host, and wait for it for a short time.

        Raises:
            HostError: it could not be called.
        """
        settings = self._context.hosts.of(host)
        try:
            async with asyncio.timeout(self.settings.opening):
                return await head_at(self._caller(), host, settings, repository, number)
        except TimeoutError as e:
            raise HostError("it did not answer in time") from e

    async def turn(self) -> None:
        """Make the calls that are due now, and wait for them."""
        while await self._begin_due(moment_text(self._context.clock())) or len(self._flights):
            await self._flights.landed()

    async def close(self) -> None:
        """Stop; unreported checks are reported by the next service."""
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
                await retry_until_stored(partial(self._begin_due, moment_text(now)))
                # With the same moment: checks that became due since are not missed.
                await self._wait(now)
        except DatabaseClosedError:
            return

    async def _begin_due(self, now: str) -> int:
        """Start as many calls as the limit allows; return how many."""
        count = 0
        most = self.settings.at_once + len(self._flights)
        database, home = self._context.database, self._context.home_id
        for check_id in await database.read(lambda c: due_checks(c, home, now, most)):
            row = await database.read(partial(find_check, check_id=check_id))
            room = len(self._flights) < self.settings.at_once
            if room and row is not None and _record_of(row) not in self._flights:
                self._begin(row)
                count += 1
        return count

    def _begin(self, row: RowMapping) -> "asyncio.Task[None]":
        return self._flights.begin(_record_of(row), self._bring(row["id"]))

    async def _wait(self, now: datetime) -> None:
        soonest = await retry_until_stored(
            lambda: self._context.database.read(lambda c: next_due_check(c, moment_text(now)))
        )
        await self._flights.wait(now, soonest, self.settings.longest_wait)

    async def _bring(self, check_id: str) -> None:
        """Try once to send the newest state to the host."""
        database = self._context.database
        try:
            row = await retry_until_stored(lambda: database.write(self._begin_call(check_id)))
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
            await retry_until_stored(
                lambda: database.write(lambda c: service.note_reported(c, row, ref))
            )
        except DatabaseClosedError:
            return

    def _begin_call(self, check_id: str) -> Callable[[Connection], RowMapping | None]:
        home, now = self._context.home_id, self._context.clock()
        return lambda connection: service.begin(connection, check_id, home, now)

    async def _failed(self, row: RowMapping, error: HostError) -> None:
        now = self._context.clock()
        database = self._context.database
        over = await retry_until_stored(
            lambda: database.write(lambda c: service.note_failure(c, row, now))
        )
        if over:
            log.warning("%s could not be notified of check %s: %s", row["host"], row["id"], error)
        else:
            log.info("%s did not accept check %s: %s", row["host"], row["id"], error)

    async def _call(self, row: RowMapping) -> str | None:
        settings = self._context.hosts.of(row["host"])
        if not settings.writable:
            raise HostError("it is not configured any more")
        report = report_to_host_a if row["host"] == HOST_A else report_to_host_b
        try:
            async with asyncio.timeout(self.settings.limit):
                return await report(self._caller(), settings, row)
        except TimeoutError as e:
            raise HostError("it did not answer in time") from e

    def _caller(self) -> "httpx.AsyncClient":
        if self._client is None:
            self._client = open_client(self.settings.limit)
        return self._client


def _record_of(row: RowMapping) -> str:
    """Return the name of the host's record: at host B it covers all checks of a commit and a name."""
    if row["host"] == HOST_A:
        return row["id"]
    return f"{row['host']} {row['repository']} {row['head_sha']} {row['name']}"
