"""Watch the connection to the service, and read the list of replicas."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quarterdeck.client.errors import (
    ClientError,
    InvalidKeyError,
    NoKeyError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
    StoppedError,
    UnauthorizedError,
    UnreachableError,
)
from quarterdeck.store.status import ConnectionPhase

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.app_state import AppState


Revive = Callable[[bool], Awaitable[str | None]]
"""Ensures that the embedded service runs; returns the problem when it cannot.

Its argument says whether the person wants it: one that they have stopped is not started otherwise, and
`StoppedError` raised. For a service that is shown beside another it finds the key too, and raises `NoKeyError` without one.
"""

NO_VALID_KEY = (UnauthorizedError, InvalidKeyError, NoKeyError)

CHECK_PERIOD = 5.0
"""Seconds between two checks of a service that answers. Every second one reads the list, for replicas
created elsewhere."""

ANSWER_SECONDS, ANSWER_LATENCIES, LONGEST_ANSWER = 5.0, 100, 15.0
"""A service that has not answered by then hangs, or the connection does. A slow connection,
where other answers may be queued first, gets this many latencies more."""

FIRST_DELAY, LONGEST_DELAY = 0.25, 10.0

PROBES = 2
"""The best of several is the latency: one may have been delayed by the cockpit itself."""
LATENCY_FACTOR = 1.4
"""A latency is shown at once when it differs from the one shown by this factor, ..."""
LATENCY_MILLISECONDS = 20
"""... and by this many milliseconds."""


def is_news(shown: float | None, measured: float) -> bool:
    """Return whether a latency differs enough from the one shown (milliseconds, None: none shown)."""
    # Differences below this are noise, such as load on the machine.
    shown, measured = (max(known or 0, LATENCY_MILLISECONDS) for known in (shown, measured))
    within = shown / LATENCY_FACTOR < measured < shown * LATENCY_FACTOR
    return not within and abs(measured - shown) > LATENCY_MILLISECONDS


class ConnectionMonitor:
    """Watches until canceled."""

    def __init__(self, owner: "AppState", revive: Revive | None) -> None:
        self._connection = owner.connection
        self._owner = owner
        self._revive = revive
        self._poke = asyncio.Event()
        self._retry = asyncio.Event()
        self._shown_latency: float | None = None

    def poke(self) -> None:
        """Check again at once."""
        self._poke.set()

    def retry(self) -> None:
        """Check again at once, because the person wants it: also for a key, which may ask the person."""
        self._retry.set()
        self.poke()

    def refused(self, error: ClientError) -> None:
        """Note that the service refused access."""
        self._connection.needs_login = isinstance(error, NO_VALID_KEY)
        self._set_phase(ConnectionPhase.REFUSED, f"{error} {error.next_step}")

    def failed(self, problem: str) -> None:
        """Note that the service is no longer followed, because its store has failed."""
        self._set_phase(ConnectionPhase.REFUSED, problem)

    async def wait_for_service(self, make_client: "Callable[[], Client]") -> "Client":
        """Return a client once the embedded service runs and there is a key that can be sent."""
        while True:
            self._retry.clear()
            try:
                problem = await self._revived(wanted=True)
                if problem is None:
                    return make_client()
            except (NoKeyError, InvalidKeyError) as error:
                self.refused(error)
                await self._retry.wait()
                self._set_phase(ConnectionPhase.CONNECTING, None)
                continue
            self._set_phase(ConnectionPhase.RECONNECTING, problem, LONGEST_DELAY)
            await self._pause(LONGEST_DELAY)

    async def run(self) -> None:
        """Check until canceled."""
        delay = FIRST_DELAY
        reads_list = True
        while True:
            self._poke.clear()
            try:
                await self._check(reads_list)
            except (UnreachableError, RequestTimeoutError) as error:
                if self._retry.is_set():
                    delay = FIRST_DELAY  # what the person starts answers soon
                await self._lost(error, delay)
                delay = min(delay * 2, LONGEST_DELAY)
                reads_list = True
            except ClientError as error:
                self.refused(error)
                await self._pause(LONGEST_DELAY)
                reads_list = True
            else:
                delay = FIRST_DELAY
                self._retry.clear()
                poked = await self._pause(CHECK_PERIOD)
                reads_list = poked or not reads_list

    async def _check(self, reads_list: bool) -> None:
        times: list[float] = []
        is_online = self._connection.phase == ConnectionPhase.ONLINE
        if is_online:
            times.append(await self._check_answer())
        if reads_list:
            await self._read_list()
            if is_online:
                times.append(await self._answer_time())
        # Not at the start, when the cockpit itself is what takes the time.
        if len(times) == PROBES or (times and self._connection.latency_ms is None):
            self._note_latency(min(times))
        if not is_online:
            self._set_phase(ConnectionPhase.ONLINE, None)
            self._owner.back_online()

    async def _read_list(self) -> None:
        client = self._owner.client
        before = set(self._owner.replicas)
        replicas = [record async for record in client.replicas.all()]
        self._owner.take_list(replicas, before)

    async def _check_answer(self) -> float:
        # A call with its retries takes longer than a person should wait for this.
        seconds = ANSWER_SECONDS + ANSWER_LATENCIES * (self._connection.latency_ms or 0) / 1000
        try:
            async with asyncio.timeout(min(seconds, LONGEST_ANSWER)):
                return await self._answer_time()
        except TimeoutError as error:
            raise RequestTimeoutError(f"{self._connection.endpoint} does not answer.") from error

    def _note_latency(self, latency: float) -> None:
        self._connection.latency_ms = latency
        if not is_news(self._shown_latency, latency):
            return  # it is shown with the next change
        self._shown_latency = latency
        self._owner.connection_changed()

    async def _answer_time(self) -> float:
        started = time.monotonic()
        # Without a health operation, or with another one, the refusal is timed.
        with suppress(ResponseError, ProtocolError):
            await self._owner.client.health.get()
        return (time.monotonic() - started) * 1000

    async def _lost(self, error: ClientError, delay: float) -> None:
        wanted = self._retry.is_set()
        self._retry.clear()
        reviving = asyncio.create_task(self._revived(wanted))
        try:
            # Its first step tells whether the person has stopped the service, which is not lost then.
            await asyncio.sleep(0)
            if not (reviving.done() and isinstance(reviving.exception(), StoppedError)):
                self._set_phase(ConnectionPhase.RECONNECTING, str(error), delay)
            problem = await reviving
        except StoppedError as stopped:
            self._set_phase(ConnectionPhase.STOPPED, str(stopped), delay)
        else:
            if problem is not None:
                self._set_phase(ConnectionPhase.RECONNECTING, problem, delay)
        finally:
            reviving.cancel()
        await self._pause(delay)

    async def _revived(self, wanted: bool) -> str | None:
        return await self._revive(wanted) if self._revive is not None else None

    async def _pause(self, seconds: float) -> bool:
        """Return whether it was ended early, to check at once."""
        # Not wait_for: it loses a cancellation that comes together with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._poke.wait()
        poked = self._poke.is_set()
        self._poke.clear()
        return poked

    def _set_phase(
        self, phase: ConnectionPhase, problem: str | None, retry_in: float | None = None
    ) -> None:
        state = self._connection
        if problem is None:
            state.down_since = None
        elif state.phase == ConnectionPhase.ONLINE:
            state.down_since = datetime.now(UTC)
        new = (phase, problem, retry_in)
        if new != (state.phase, state.problem, state.retry_in):
            state.phase, state.problem, state.retry_in = new
            self._owner.connection_changed()
