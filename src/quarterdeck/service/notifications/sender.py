"""Send webhooks and notifications.

Makes the calls of webhooks: three attempts, with the same id and body.

A call is removed from the database only after it was accepted or given up, so a service that is
killed makes it again: at least once. A redirection is not followed and counts as a failure.

Signing webhook calls: an organization's secret, and a body's signature.

The secret is derived from the installation's master key and the number of times that it was
rotated, which is all that is stored. A receiver checks

    X-Service-Signature: sha256=<hex HMAC-SHA256 of the raw body, keyed with the secret's text>
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection, delete, insert, select

from quarterdeck import __version__
from quarterdeck.local.lookups import ORGANIZATION
from quarterdeck.service.context import ServiceContext, parts
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.db.records import stored_moment
from quarterdeck.service.db.tables import settings
from quarterdeck.service.errors import DamagedRecordError, DatabaseClosedError, StorageError
from quarterdeck.service.event_rows import StoredEvent
from quarterdeck.service.first_start import reaches_private
from quarterdeck.service.formats import moment_text
from quarterdeck.service.notifications.notifier import Notifier
from quarterdeck.service.notifications.rows import (
    REPORTED,
    WebhookDelivery,
    drop_delivery,
    due_deliveries,
    next_moment,
    put_off,
)
from quarterdeck.service.notifications.targets import PRIVATE, open_guarded_client
from quarterdeck.service.vault import Vault, webhook_place

if TYPE_CHECKING:
    import httpx


class InflightTasks:
    """The tasks of calls. The owner ends them with `close`."""

    def __init__(self, name: str, called: asyncio.Event) -> None:
        """Keep an event that is set when there may be a new call, and after each call."""
        self._name = name
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._called = called

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, about: str) -> bool:
        return about in self._tasks

    def get(self, about: str) -> "asyncio.Task[None] | None":
        """Return the running call about this."""
        return self._tasks.get(about)

    def begin(self, about: str, call: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Start a call; its end wakes the loop for the next."""
        task = self._tasks[about] = asyncio.create_task(call, name=self._name)
        task.add_done_callback(lambda _: self._landed(about))
        return task

    def _landed(self, about: str) -> None:
        self._tasks.pop(about, None)
        self._called.set()

    def look(self) -> None:
        """Reset the event; call before the stored calls are read."""
        self._called.clear()

    async def wait(self, now: datetime, soonest: str | None, longest: float) -> None:
        """Wait until the event is set, a moment has come, or `longest` seconds have passed."""
        delay = longest
        if soonest is not None:
            with suppress(DamagedRecordError):  # others wait no longer than `longest`
                due = (stored_moment(soonest) - now).total_seconds()
                delay = min(delay, max(due, 0) + 0.001)
        try:
            async with asyncio.timeout(delay):
                await self._called.wait()
        except TimeoutError:
            return

    async def landed(self) -> None:
        """Wait until a running call has ended."""
        await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


HEADER = "X-Service-Signature"
MARK = "whsec_"


async def webhook_secret(context: ServiceContext, organization_id: str) -> str:
    """Return the secret with which an organization's calls are signed."""
    rotations = await context.database.read(lambda c: _rotations(c, organization_id))
    return _derived(context.vault, organization_id, rotations)


async def rotate_webhook_secret(context: ServiceContext, organization_id: str) -> str:
    """Rotate the secret, which the next call is signed with, and return it."""

    def run(connection: Connection) -> int:
        rotations = _rotations(connection, organization_id) + 1
        name = _setting(organization_id)
        connection.execute(delete(settings).where(settings.c.name == name))
        connection.execute(insert(settings).values(name=name, value=str(rotations), revision=0))
        return rotations

    return _derived(context.vault, organization_id, await context.database.write(run))


def _setting(organization_id: str) -> str:
    return f"webhook-secret:{organization_id}"


def _rotations(connection: Connection, organization_id: str) -> int:
    statement = select(settings.c.value).where(settings.c.name == _setting(organization_id))
    return int(connection.execute(statement).scalar() or 0)


def _derived(vault: Vault, organization_id: str, rotations: int) -> str:
    text = f"{organization_id}:{rotations}" if rotations else organization_id
    return MARK + hmac.new(vault.derived("webhooks"), text.encode(), hashlib.sha256).hexdigest()


def signature(secret: str, body: bytes) -> str:
    """Return the header's value for a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SenderSettings:
    """Limits of webhook calls; times in seconds."""

    limit: float = 10.0
    """A call that is not answered within this has failed."""
    tries: tuple[float, ...] = (0.0, 10.0, 60.0)
    """When the attempts are made, from the first one on (docs/interface.md 11)."""
    at_once: int = 8
    longest_wait: float = 60.0
    """The database is checked after this at the latest."""


class WebhookSender:
    """The one owner of calls to webhooks."""

    def __init__(self, context: ServiceContext, settings: SenderSettings | None = None) -> None:
        self._context = context
        self._settings = settings or SenderSettings()
        self._flights = InflightTasks("webhook", context.webhooks_stored)
        self._client: httpx.AsyncClient | None = None

    async def run(self) -> None:
        """Make calls forever."""
        try:
            while True:
                self._flights.look()
                now = self._context.clock()
                await retry_until_stored(partial(self._send_due, moment_text(now)))
                # With the same moment: calls that became due since are not missed.
                await self._wait(now)
        except DatabaseClosedError:
            return
        finally:
            await self._end()

    async def _send_due(self, now: str) -> None:
        room = self._settings.at_once - len(self._flights)
        most = self._settings.at_once + len(self._flights)
        read, home = self._context.database.read, self._context.home_id
        for delivery in await read(lambda c: due_deliveries(c, home, now, most)):
            if room > 0 and delivery.id not in self._flights:
                room -= 1
                self._flights.begin(delivery.id, self._try(delivery))

    async def _wait(self, now: datetime) -> None:
        read, home = self._context.database.read, self._context.home_id
        soonest = await retry_until_stored(
            lambda: read(lambda c: next_moment(c, home, moment_text(now)))
        )
        await self._flights.wait(now, soonest, self._settings.longest_wait)

    async def _try(self, delivery: WebhookDelivery) -> None:
        began, tries = self._context.clock(), self._settings.tries
        failure = await self._call(delivery)
        attempts = delivery.attempts + 1
        database = self._context.database
        if failure is None or attempts >= len(tries):
            if failure is not None:
                log.warning("Webhook call %s is given up: %s", delivery.id, failure)
            await retry_until_stored(
                lambda: database.write(lambda c: drop_delivery(c, delivery.id))
            )
            return
        log.info("Webhook call %s failed: %s", delivery.id, failure)
        again = moment_text(began + timedelta(seconds=tries[attempts] - tries[attempts - 1]))
        await retry_until_stored(
            lambda: database.write(lambda c: put_off(c, delivery.id, attempts, again))
        )

    async def _call(self, delivery: WebhookDelivery) -> str | None:
        """Make one attempt; None when it was accepted, else the error."""
        import httpx

        ORGANIZATION.set(delivery.organization_id)
        context, body = self._context, delivery.body.encode()
        place = webhook_place(delivery.organization_id)
        try:
            url = context.vault.unseal(place, delivery.url_sealed)
        except StorageError:
            return "its address cannot be opened with this installation's key"
        private = await reaches_private(
            context.database, context.outgoing_private, delivery.user_id
        )
        secret = await webhook_secret(self._context, delivery.organization_id)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"quarterdeck/{__version__}",
            HEADER: signature(secret, body),
        }
        try:
            async with (
                asyncio.timeout(self._settings.limit),
                # The response body is not needed, and not read.
                self._open().stream(
                    "POST", url, content=body, headers=headers, extensions={PRIVATE: private}
                ) as answer,
            ):
                return None if answer.is_success else f"it answered {answer.status_code}"
        except TimeoutError:
            return "it did not answer in time"
        # ValueError: a host's name that the library cannot decode.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as e:
            return type(e).__name__

    def _open(self) -> "httpx.AsyncClient":
        if self._client is None:
            self._client = open_guarded_client(self._settings.limit, self._context.outgoing_proxy)
        return self._client

    async def _end(self) -> None:
        await self._flights.close()
        if self._client is not None:
            await self._client.aclose()


class NotificationService:
    """Webhooks and notifications of one service; started and closed with the application."""

    def __init__(self, context: ServiceContext, settings: SenderSettings | None = None) -> None:
        self.notifier = Notifier(context)
        self._context = context
        self._webhooks = WebhookSender(context, settings)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start to send, first the calls that an earlier service left."""
        for work in (self._webhooks.run(), self.notifier.run()):
            self._tasks.append(asyncio.create_task(work))

    async def close(self) -> None:
        """Stop sending; calls of webhooks are kept."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        """Observe the event log."""
        if any(event.type in REPORTED for event in stored):
            self._context.webhooks_stored.set()
        self.notifier.hear(workspace_id, stored)


async def _outward(request: Request) -> NotificationService:
    return parts(request).notifications


OutwardDep = Annotated[NotificationService, Depends(_outward)]
"""Annotation of a route's parameter that takes the owner."""
