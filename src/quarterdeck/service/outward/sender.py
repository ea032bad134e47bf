"""Makes the calls of webhooks: three tries, the same id and body in each.

A call leaves the database only after it was taken or given up, so a service that is killed makes it
again: at least once. A redirection is not followed and counts as a failure.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quarterdeck import __version__
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import DatabaseClosedError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.calling import open_client
from quarterdeck.service.outward.flights import Flights
from quarterdeck.service.outward.signature import HEADER, signature, webhook_secret
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.deliveries import (
    Delivery,
    drop_delivery,
    due_deliveries,
    next_moment,
    put_off,
)

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SenderSettings:
    """Limits of webhook calls; times in seconds."""

    limit: float = 10.0
    """A receiver that has not answered within this has not taken the call."""
    pauses: tuple[float, ...] = (5.0, 30.0)
    """Before the second and the third try."""
    at_once: int = 8
    longest_wait: float = 60.0
    """The database is looked at after this at the latest."""


class WebhookSender:
    """The one owner of calls to webhooks."""

    def __init__(self, context: ServiceContext, settings: SenderSettings | None = None) -> None:
        self._context = context
        self._settings = settings or SenderSettings()
        self._flights = Flights("webhook")
        self._client: httpx.AsyncClient | None = None

    def nudge(self) -> None:
        """A call may have been stored."""
        self._flights.nudge()

    async def run(self) -> None:
        """Makes calls for ever."""
        try:
            while True:
                self._flights.look()
                now = self._context.clock()
                await until_stored(partial(self._send_due, moment_text(now)))
                # With the same moment: what became due since is not overlooked.
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
        soonest = await until_stored(lambda: read(lambda c: next_moment(c, home, moment_text(now))))
        await self._flights.wait(now, soonest, self._settings.longest_wait)

    async def _try(self, delivery: Delivery) -> None:
        failure = await self._call(delivery)
        attempts = delivery.attempts + 1
        database = self._context.database
        if failure is None or attempts > len(self._settings.pauses):
            if failure is not None:
                log.warning("Webhook call %s is given up: %s", delivery.id, failure)
            await until_stored(lambda: database.write(lambda c: drop_delivery(c, delivery.id)))
            return
        host = urlsplit(delivery.url).hostname  # the rest of an address may be a secret
        log.info("Webhook call %s to %s failed: %s", delivery.id, host, failure)
        pause = timedelta(seconds=self._settings.pauses[attempts - 1])
        again = moment_text(self._context.clock() + pause)
        await until_stored(
            lambda: database.write(lambda c: put_off(c, delivery.id, attempts, again))
        )

    async def _call(self, delivery: Delivery) -> str | None:
        """Makes one try; None when it was taken, else what was wrong."""
        import httpx

        body = delivery.body.encode()
        secret = webhook_secret(self._context.vault, delivery.organization_id)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"quarterdeck/{__version__}",
            HEADER: signature(secret, body),
        }
        try:
            async with (
                asyncio.timeout(self._settings.limit),
                # The answer's body is of no interest, and is not read.
                self._open().stream("POST", delivery.url, content=body, headers=headers) as answer,
            ):
                return None if answer.is_success else f"it answered {answer.status_code}"
        except TimeoutError:
            return "it did not answer in time"
        except (httpx.HTTPError, httpx.InvalidURL) as e:
            return type(e).__name__

    def _open(self) -> "httpx.AsyncClient":
        if self._client is None:
            self._client = open_client(self._settings.limit)
        return self._client

    async def _end(self) -> None:
        await self._flights.close()
        if self._client is not None:
            await self._client.aclose()
