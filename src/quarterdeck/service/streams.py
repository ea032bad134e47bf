"""Streams of events to clients.

Live frames of the followed workspaces, and the streams that send them.

Every workspace with a stream has one ring of encoded frames; each stream is a cursor into it. A
stream whose cursor is older than the ring reads the database until it has caught up, so a slow
reader costs only its own reads, and a backlog and the live end are joined by the index alone: no
gap, no repeat.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fastapi import Response
from starlette.types import Receive, Scope, Send

from quarterdeck.engine.link import EngineError, EngineLink
from quarterdeck.service.caches import ReplayBuffer
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_rows import StoredEvent
from quarterdeck.wire.engine import TerminalFrame
from quarterdeck.wire.errors import ErrorCode

logger = logging.getLogger(__name__)

T = TypeVar("T")

EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}
LAST_WORD_SECONDS = 0.2
STOPPED_SECONDS = 5
"""Seconds for `Retry-After` when the service stops."""


class ChunkSource(Protocol):
    """A source of chunks, such as an async generator."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the chunks."""
        ...

    def aclose(self) -> Awaitable[None]:
        """Release the source's resources; called once, when nobody iterates any more."""
        ...


class StreamResponse(Response):
    """Sends chunks as they come; a slow client slows down its own source.

    `stopping` is `ServiceContext.stopping`: once set, the stream gets its regular end.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        source: ChunkSource,
        stopping: asyncio.Event,
        headers: Mapping[str, str] = EVENT_STREAM,
        status_code: int = 200,  # named so that the description of the routes can look it up
    ) -> None:
        super().__init__(status_code=status_code, headers=headers)
        del self.headers["content-length"]
        self._source = source
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        disconnected = asyncio.create_task(_disconnected(receive))
        pump = asyncio.create_task(self._pump(send))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await send(start)
            await asyncio.wait({disconnected, pump, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (disconnected, pump, stop):
                task.cancel()
            await asyncio.gather(disconnected, pump, stop, return_exceptions=True)
            await self._source.aclose()
        if not pump.cancelled():
            try:
                pump.result()
            except ApiError as error:
                # The status was sent already. The server notices the missing end and cuts the
                # connection: the client must not take a part for the whole.
                logger.warning("A response was cut short: %s %s", error, error.details or "")
                return
        if disconnected.cancelled():
            await _finish(send)

    async def _pump(self, send: Send) -> None:
        async for chunk in self._source:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def while_connected(
    receive: Receive, work: Coroutine[Any, Any, T], stopping: asyncio.Event | None = None
) -> T:
    """Await the work of a request whose body was read; cancel it when the client disconnects.

    Args:
        stopping: cancels it too.

    Raises:
        ApiError: CONFLICT: the client has disconnected, nobody reads it. SERVICE_UNAVAILABLE:
            `stopping` was set.
    """
    working = asyncio.create_task(work)
    others: list[asyncio.Task[Any]] = [asyncio.create_task(_disconnected(receive))]
    if stopping is not None:
        others.append(asyncio.create_task(stopping.wait()))
    try:
        await asyncio.wait({working, *others}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if stopping is not None and stopping.is_set():
            raise ApiError(
                ErrorCode.SERVICE_UNAVAILABLE,
                "The service is stopping. What was begun may have been done.",
                retry_after=STOPPED_SECONDS,
            )
        raise ApiError(ErrorCode.CONFLICT, "The client has disconnected.")
    finally:
        for task in (working, *others):
            task.cancel()
        await asyncio.gather(working, *others, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _finish(send: Send) -> None:
    try:
        async with asyncio.timeout(LAST_WORD_SECONDS):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        return  # the client does not read; the server cuts it off


JOINED_FRAMES = 64
JOINED_BYTES = 256 << 10
PING = b": ping\n\n"

ReadAfter = Callable[[str, int, int], Awaitable[list[StoredEvent]]]
LastIndex = Callable[[str], Awaitable[int]]


class Subscription:
    """One open stream: an async iterator of chunks, each some joined frames or a ping."""

    def __init__(
        self,
        ring: ReplayBuffer,
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
        """Return the next chunk. Pings come every interval, also between frames."""
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
        """End the stream, also for a waiting reader. Safe to call twice."""
        if not self._over:
            self._over = True
            self._ring.wake()
            self._closed()


class Broadcasts:
    """The rings of all workspaces that have a stream."""

    def __init__(self, read: ReadAfter, ping_seconds: float) -> None:
        self._read = read
        self._ping_seconds = ping_seconds
        self._rings: dict[str, ReplayBuffer] = {}
        self._ended = False

    def publish(self, workspace_id: str, events: Sequence[StoredEvent]) -> None:
        """Pass committed events to the streams, in the order of their indices."""
        ring = self._rings.get(workspace_id)
        if ring is not None:
            ring.push(events)

    async def open(self, workspace_id: str, after: int | None, last: LastIndex) -> Subscription:
        """Open a stream; `after` beyond the end means live only."""
        ring = self._enter(workspace_id)
        try:
            # The ring already receives events: one committed during the look-up is in either or
            # both.
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
        """Return how many streams a workspace has."""
        ring = self._rings.get(workspace_id)
        return 0 if ring is None else ring.readers

    def drop(self, workspace_id: str) -> None:
        """End the streams of a workspace."""
        ring = self._rings.pop(workspace_id, None)
        if ring is not None:
            ring.end()

    def close(self) -> None:
        """End every stream, also later ones."""
        self._ended = True
        for workspace_id in list(self._rings):
            self.drop(workspace_id)

    def _learn(self, ring: ReplayBuffer, last: int) -> None:
        """Note that events before this index are in the database; none of them is in the ring."""
        if not ring.frames:
            ring.last = max(ring.last, last)

    def _enter(self, workspace_id: str) -> ReplayBuffer:
        ring = self._rings.setdefault(workspace_id, ReplayBuffer())
        ring.ended = ring.ended or self._ended
        ring.readers += 1
        return ring

    def _leave(self, workspace_id: str, ring: ReplayBuffer) -> None:
        ring.readers -= 1
        if ring.readers == 0 and self._rings.get(workspace_id) is ring:
            del self._rings[workspace_id]


class TerminalFeed:
    """The chunks of one stream, over a separate link that `aclose` closes.

    It ends after `exit` or `error`. When the link is lost it just ends: the reader reconnects with
    its offset, and gets the state of the replica from the service.
    """

    def __init__(self, link: EngineLink, ping_seconds: float) -> None:
        self._link = link
        self._frames = link.terminal_frames()
        self._ping_seconds = ping_seconds
        self._next: asyncio.Task[TerminalFrame | None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next frame, or a ping when none comes for a while."""
        if self._next is None:
            self._next = asyncio.create_task(_take(self._frames))
        done, _ = await asyncio.wait({self._next}, timeout=self._ping_seconds)
        if not done:
            return PING
        frame = self._next.result()
        self._next = None
        if frame is None:
            raise StopAsyncIteration
        return message_of(frame)

    async def aclose(self) -> None:
        """Close the link."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._link.close()


def message_of(frame: TerminalFrame) -> bytes:
    """Return one message of the stream: its `id:` is the byte offset after the chunk."""
    data = frame.event.model_dump_json(by_alias=True)
    return f"id: {frame.offset}\ndata: {data}\n\n".encode()


async def _take(frames: AsyncIterator[TerminalFrame]) -> TerminalFrame | None:
    try:
        return await anext(frames, None)
    except EngineError:
        return None
