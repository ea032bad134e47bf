"""The newest frames of one workspace, encoded once for all its streams."""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice

from quarterdeck.service.records.events import StoredEvent

RING_FRAMES = 1024
RING_BYTES = 2 << 20


class Ring:
    """The newest frames of one workspace, and who waits for the next."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.last = 0
        """Index of the newest frame, in the ring or before it."""
        self.size = 0
        self.ended = False
        self.readers = 0
        self._waiters: set[asyncio.Future[None]] = set()

    def push(self, events: Sequence[StoredEvent]) -> None:
        """Adds frames; the indices of a workspace have no gaps."""
        for event in events:
            frame = event.frame()
            self.frames.append(frame)
            self.size += len(frame)
            self.last = event.index
        while self.frames and (len(self.frames) > RING_FRAMES or self.size > RING_BYTES):
            self.size -= len(self.frames.popleft())
        self.wake()

    def after(self, cursor: int, limit: int) -> list[bytes] | None:
        """Frames after a cursor, the first few; None when the ring no longer has them."""
        behind = self.last - cursor
        if behind > len(self.frames):
            return None
        start = len(self.frames) - max(behind, 0)
        return list(islice(self.frames, start, start + limit))

    def end(self) -> None:
        """No frame follows."""
        self.ended = True
        self.wake()

    def wake(self) -> None:
        """Lets everyone who waits look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Returns when something changed, at the latest after `seconds`."""
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
