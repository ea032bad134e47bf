"""Caches and buffers of bounded size."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from time import monotonic
from typing import Generic, TypeVar

from quarterdeck.service.errors import DatabaseLostError
from quarterdeck.service.event_rows import StoredEvent

Value = TypeVar("Value")


RING_FRAMES = 1024
RING_BYTES = 2 << 20


class ReplayBuffer:
    """The newest frames of one workspace, and the tasks that wait for the next."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.last = 0
        """Index of the newest frame, in the ring or before it."""
        self.size = 0
        self.ended = False
        self.readers = 0
        self._waiters: set[asyncio.Future[None]] = set()

    def push(self, events: Sequence[StoredEvent]) -> None:
        """Add frames; the indices of a workspace have no gaps."""
        for event in events:
            frame = event.frame()
            self.frames.append(frame)
            self.size += len(frame)
            self.last = event.index
        while self.frames and (len(self.frames) > RING_FRAMES or self.size > RING_BYTES):
            self.size -= len(self.frames.popleft())
        self.wake()

    def after(self, cursor: int, limit: int) -> list[bytes] | None:
        """Return the frames after a cursor, the first few; None when the ring no longer has them."""
        count = self.last - cursor
        if count > len(self.frames):
            return None
        start = len(self.frames) - max(count, 0)
        return list(islice(self.frames, start, start + limit))

    def end(self) -> None:
        """Note that no frame follows."""
        self.ended = True
        self.wake()

    def wake(self) -> None:
        """Wake everyone who waits."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Wait until something changed, at most `seconds`."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _settle, waiter)
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


K = TypeVar("K")

SECONDS = 5.0
"""Something that another service removed is refused after this long at the latest."""
OUTAGE_SECONDS = 60.0
"""While the database's server is lost, a value is used for this long beyond its life."""
ENTRIES = 1_000


class Remembered(Generic[K, Value]):
    """Values by key; None is never kept. `lost` says that the database's server is unreachable."""

    def __init__(
        self,
        now: Callable[[], float] = monotonic,
        seconds: float = SECONDS,
        lost: Callable[[], bool] = lambda: False,
    ) -> None:
        self._now = now
        self._seconds = seconds
        self._lost = lost
        self._found: dict[K, tuple[float, Value]] = {}
        self._generation = 0

    async def get(self, key: K, look: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """Return the kept value, else the result of `look`.

        Raises:
            DatabaseLostError: it was not looked up lately.
            Exception: what `look` raises.
        """
        expires, kept = self._found.get(key, (0.0, None))
        if kept is not None and self._now() < expires + (OUTAGE_SECONDS if self._lost() else 0.0):
            return kept
        generation = self._generation
        try:
            value = await look()
        except DatabaseLostError:
            if kept is None or self._now() >= expires + OUTAGE_SECONDS:
                raise
            return kept
        # A value read before something was removed must not be kept after it.
        if value is None:
            self._found.pop(key, None)
        elif generation == self._generation:
            self._keep(key, value)
        return value

    def forget(self) -> None:
        """Make the next look-up of every key read again."""
        self._generation += 1
        self._found.clear()

    def _keep(self, key: K, value: Value) -> None:
        if len(self._found) >= ENTRIES:
            self._found.clear()
        self._found[key] = (self._now() + self._seconds, value)
