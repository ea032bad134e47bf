"""The watch over the service: the list of replicas, and the state of the line to it.

look at the list --> replicas that came and went     (every 10 s, and when a stream breaks)
      |
      fails --> reconnecting, later and later, the embedded service started again
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from quarterdeck.client.errors import (
    ApiError,
    ClientError,
    ProtocolError,
    TimedOut,
    Unreachable,
)
from quarterdeck.store.connection import ConnectionState, Phase
from quarterdeck.wire.replicas import Replica

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

Revive = Callable[[], Awaitable[str | None]]
"""Sees to it that the embedded service runs; answers a sentence when it cannot."""

LIST_PERIOD = 10.0
"""Seconds between two looks for replicas that someone else made."""

ANSWER_SECONDS = 15.0
"""A service that has not said by then that it is there stands still, or the line does."""

FIRST_DELAY, LONGEST_DELAY = 0.25, 10.0

PROBES = 2
WORTH_TELLING = 2.0
"""A latency is told again when it is this many times the one told, or less than its part, ..."""
WORTH_MILLISECONDS = 50
"""... and so many milliseconds away from it."""


class LookoutOwner(Protocol):
    """What the lookout tells about."""

    @property
    def client(self) -> "Client": ...

    def take_list(self, found: Iterable[Replica]) -> None: ...

    def back_online(self) -> None: ...

    def connection_changed(self) -> None: ...


class Lookout:
    """Watches until canceled."""

    def __init__(
        self, connection: ConnectionState, owner: LookoutOwner, revive: Revive | None
    ) -> None:
        self._connection = connection
        self._owner = owner
        self._revive = revive
        self._poke = asyncio.Event()

    def poke(self) -> None:
        """Looks again at once."""
        self._poke.set()

    def refused(self, error: ClientError) -> None:
        """The service does not let us in."""
        self._tell(Phase.REFUSED, f"{error} {error.next_step}")

    async def wait_for_service(self) -> None:
        """Returns once the embedded service runs; at once for one elsewhere."""
        while (problem := await self._revived()) is not None:
            self._tell(Phase.RECONNECTING, problem, LONGEST_DELAY)
            await self._pause(LONGEST_DELAY)

    async def run(self) -> None:
        """Looks for ever."""
        delay = FIRST_DELAY
        while True:
            self._poke.clear()
            try:
                await self._look()
            except (Unreachable, TimedOut) as error:
                await self._lost(error, delay)
                delay = min(delay * 2, LONGEST_DELAY)
            except ClientError as error:
                self.refused(error)
                await self._pause(LONGEST_DELAY)
            else:
                delay = FIRST_DELAY
                await self._pause(LIST_PERIOD)

    async def _look(self) -> None:
        if self._connection.phase == Phase.ONLINE:
            await self._hear()
        client = self._owner.client
        found = [record async for record in client.replicas.all()]
        self._owner.take_list(found)
        # After the list, so that what opening a connection costs is not in it.
        await self._measure()
        if self._connection.phase != Phase.ONLINE:
            self._tell(Phase.ONLINE, None)
            self._owner.back_online()

    async def _hear(self) -> None:
        # A call takes all the time it is given, three times over; a person wants to know sooner.
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._answer_time()
        except TimeoutError as error:
            raise TimedOut(f"{self._connection.endpoint} does not answer.") from error

    async def _measure(self) -> None:
        # The best of a few: one may have waited for what the cockpit itself was doing.
        taken = min([await self._answer_time() for _ in range(PROBES)])
        told = self._connection.latency_ms
        if told is None or self._connection.phase != Phase.ONLINE:
            self._connection.latency_ms = taken
        elif (
            abs(taken - told) > WORTH_MILLISECONDS
            and not 1 / WORTH_TELLING < taken / told < WORTH_TELLING
        ):
            self._connection.latency_ms = taken
            self._owner.connection_changed()

    async def _answer_time(self) -> float:
        begun = time.monotonic()
        # A server that has no health operation, or another one, is told by the time of its refusal.
        with suppress(ApiError, ProtocolError):
            await self._owner.client.health.get()
        return (time.monotonic() - begun) * 1000

    async def _lost(self, error: ClientError, delay: float) -> None:
        self._tell(Phase.RECONNECTING, str(error), delay)
        problem = await self._revived()
        if problem is not None:
            self._tell(Phase.RECONNECTING, problem, delay)
        await self._pause(delay)

    async def _revived(self) -> str | None:
        return await self._revive() if self._revive is not None else None

    async def _pause(self, seconds: float) -> None:
        # Not wait_for: it loses a cancellation that comes together with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._poke.wait()
        self._poke.clear()

    def _tell(self, phase: Phase, problem: str | None, retry_in: float | None = None) -> None:
        state = self._connection
        told = (phase, problem, retry_in)
        if told != (state.phase, state.problem, state.retry_in):
            state.phase, state.problem, state.retry_in = told
            self._owner.connection_changed()
