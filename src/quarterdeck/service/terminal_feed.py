"""A terminal's output as a stream of events (INTERFACE 6)."""

import asyncio
from collections.abc import AsyncIterator

from quarterdeck.engine.link import EngineError, EngineLink
from quarterdeck.service.broadcast import PING
from quarterdeck.wire.engine import TerminalFrame


class TerminalFeed:
    """The chunks of one stream, over a link of its own that `aclose` ends.

    It ends after `exit` or `error`. When the link is lost it just ends: the reader comes again with
    its offset, and hears from the service how the replica is.
    """

    def __init__(self, link: EngineLink, ping_seconds: float) -> None:
        self._link = link
        self._frames = link.terminal_frames()
        self._ping_seconds = ping_seconds
        self._next: asyncio.Task[TerminalFrame | None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """The next frame, or a ping when none comes for a while."""
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
        """Lets go of the link."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._link.close()


def message_of(frame: TerminalFrame) -> bytes:
    """One message of the stream: its `id:` is the byte offset after the chunk."""
    data = frame.event.model_dump_json(by_alias=True)
    return f"id: {frame.offset}\ndata: {data}\n\n".encode()


async def _take(frames: AsyncIterator[TerminalFrame]) -> TerminalFrame | None:
    try:
        return await anext(frames, None)
    except EngineError:
        return None
