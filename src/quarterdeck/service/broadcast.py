"""Live frames of the workspaces that somebody follows, and the streams that send them.

Every workspace with a stream has one ring of encoded frames; each stream is a cursor into it. A
stream whose cursor is older than the ring reads the database until it has caught up, so a slow
reader costs nothing but its own reads, and a backlog and the live end are joined by the index
alone: no gap, no repeat.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from quarterdeck.service.records.events import StoredEvent
from quarterdeck.service.ring import Ring

JOINED_FRAMES = 64
JOINED_BYTES = 256 << 10
PING = b": ping\n\n"

ReadAfter = Callable[[str, int, int], Awaitable[list[StoredEvent]]]
LastIndex = Callable[[str], Awaitable[int]]


class Subscription:
    """One open stream: an async iterator of chunks, each some joined frames or a ping."""

    def __init__(
        self,
        ring: Ring,
        cursor: int,
        read: Callable[[int, int], Awaitable[list[StoredEvent]]],
        ping_seconds: float,
        closed: Callable[[], None],
    ) -> None:
        self.cursor = cursor
        self._ring = ring
        self._read = read
        self._ping_seconds = ping_seconds
        self._closed = closed
        self._over = False
        self._ping_at = asyncio.get_running_loop().time() + ping_seconds

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> bytes:
        """The next chunk. Pings come every interval, also between frames."""
        while not (self._over or self._ring.ended):
            left = self._ping_at - asyncio.get_running_loop().time()
            if left <= 0:
                self._ping_at += self._ping_seconds - left
                return PING
            if self._ring.last > self.cursor and (frames := await self._take()):
                return frames
            await self._ring.wait(left)
        raise StopAsyncIteration

    async def _take(self) -> bytes:
        frames = self._ring.after(self.cursor, JOINED_FRAMES)
        if frames is None:
            frames = [event.frame() for event in await self._read(self.cursor, JOINED_FRAMES)]
        return self._join(frames)

    def _join(self, frames: list[bytes]) -> bytes:
        size = count = 0
        for frame in frames:
            size += len(frame)
            if count and size > JOINED_BYTES:
                break
            count += 1
        self.cursor += count
        return b"".join(frames[:count])

    async def aclose(self) -> None:
        """Ends the stream; whoever waits in it gets its end. Safe to call twice."""
        if not self._over:
            self._over = True
            self._ring.wake()
            self._closed()


class Broadcasts:
    """The rings of all workspaces that have a stream."""

    def __init__(self, read: ReadAfter, ping_seconds: float) -> None:
        self._read = read
        self._ping_seconds = ping_seconds
        self._rings: dict[str, Ring] = {}
        self._ended = False

    def publish(self, workspace_id: str, events: Sequence[StoredEvent]) -> None:
        """Hands committed events to the streams, in the order of their indices."""
        ring = self._rings.get(workspace_id)
        if ring is not None:
            ring.push(events)

    async def open(self, workspace_id: str, after: int | None, last: LastIndex) -> Subscription:
        """Opens a stream; `after` beyond the end means live only."""
        ring = self._enter(workspace_id)
        try:
            # The ring already listens: an event committed during the look-up is in one or both.
            known = await last(workspace_id)
        except BaseException:
            self._leave(workspace_id, ring)
            raise
        end = max(known, ring.last)
        self._learn(ring, end)
        cursor = known if after is None else min(after, end)
        return Subscription(
            ring,
            cursor,
            lambda index, limit: self._read(workspace_id, index, limit),
            self._ping_seconds,
            lambda: self._leave(workspace_id, ring),
        )

    def listeners(self, workspace_id: str) -> int:
        """How many streams a workspace has."""
        ring = self._rings.get(workspace_id)
        return 0 if ring is None else ring.readers

    def drop(self, workspace_id: str) -> None:
        """Ends the streams of a workspace."""
        ring = self._rings.pop(workspace_id, None)
        if ring is not None:
            ring.end()

    def close(self) -> None:
        """Ends every stream, also later ones."""
        self._ended = True
        for workspace_id in list(self._rings):
            self.drop(workspace_id)

    def _learn(self, ring: Ring, last: int) -> None:
        """Events before the ring's time are in the database; none of them is in the ring."""
        if not ring.frames:
            ring.last = max(ring.last, last)

    def _enter(self, workspace_id: str) -> Ring:
        ring = self._rings.setdefault(workspace_id, Ring())
        ring.ended = ring.ended or self._ended
        ring.readers += 1
        return ring

    def _leave(self, workspace_id: str, ring: Ring) -> None:
        ring.readers -= 1
        if ring.readers == 0 and self._rings.get(workspace_id) is ring:
            del self._rings[workspace_id]
