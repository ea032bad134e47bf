"""A response that streams until its source ends, its client goes, or the service stops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}
LAST_WORD_SECONDS = 0.2


class ChunkSource(Protocol):
    """Where chunks come from. An async generator is one."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks."""
        ...

    def aclose(self) -> Awaitable[None]:
        """Lets go of what the source holds; called once, when nobody iterates any more."""
        ...


class StreamResponse(Response):
    """Sends chunks as they come; a client that reads slowly holds its own source back.

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
        """Serves one request."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        gone = asyncio.create_task(_disconnected(receive))
        pump = asyncio.create_task(self._pump(send))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await send(start)
            await asyncio.wait({gone, pump, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, pump, stop):
                task.cancel()
            await asyncio.gather(gone, pump, stop, return_exceptions=True)
            await self._source.aclose()
        if not pump.cancelled():
            pump.result()
        if gone.cancelled():
            await _finish(send)

    async def _pump(self, send: Send) -> None:
        async for chunk in self._source:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _finish(send: Send) -> None:
    try:
        async with asyncio.timeout(LAST_WORD_SECONDS):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        return  # the client does not read; the server cuts it off
