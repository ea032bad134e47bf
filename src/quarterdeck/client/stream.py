"""A stream that reconnects and goes on where it was.

    connect -> frames -> cursor (reads, drops repeats, notes the place) -> items
       ^                                             |
       └──── back-off <──── Lost <── cut, stall, 5xx ┘      refused (401, 404, ...): raised

What makes event and terminal streams differ is their `Cursor`.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from httpx_sse import ServerSentEvent

from quarterdeck.client.connection import Connection
from quarterdeck.client.errors import ApiError, ClientError, Unreachable
from quarterdeck.client.faults import is_final
from quarterdeck.client.items import Lost, Restored
from quarterdeck.client.retry import STREAM_PACE, Pace

Item = TypeVar("Item")
ItemOut = TypeVar("ItemOut", covariant=True)


class Cursor(Protocol[ItemOut]):
    """Reads one stream's messages and knows the place reached."""

    @property
    def place(self) -> str | None:
        """`Last-Event-ID` of the next request; None when the stream cannot be resumed."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the stream has said that nothing follows."""
        ...

    def connected(self) -> None:
        """A new connection begins at `place`."""
        ...

    def take(self, message: ServerSentEvent) -> Iterable[ItemOut]:
        """What a message gives: nothing for a repeat. Advances the place.

        Raises:
            ClientError: this connection cannot go on; another one can.
        """
        ...


class ResumingStream(Generic[Item]):
    """An async iterator over items, `Lost` and `Restored`, until it is closed or refused.

    With `announced` the first connection gives a `Restored` too: what is read from then on misses
    nothing. Use it as an async context manager, so that its connection is closed with the block. It has one
    reader; a reader that is canceled in the middle of waiting ends it.
    """

    def __init__(
        self,
        connection: Connection,
        path: str,
        cursor: Cursor[Item],
        pace: Pace = STREAM_PACE,
        *,
        announced: bool = False,
    ) -> None:
        self._announced = announced
        self._connection = connection
        self._path = path
        self._cursor = cursor
        self._pace = pace
        self._failures = 0
        self._hurry = asyncio.Event()
        self._items = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item | Lost | Restored:
        return await anext(self._items)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connection. Safe to call twice."""
        await self._items.aclose()

    def reconnect_now(self) -> None:
        """Ends the waiting after a loss: the next try is made at once."""
        self._hurry.set()

    async def _run(self) -> AsyncGenerator[Item | Lost | Restored]:
        was_lost = self._announced
        while True:
            try:
                async with aclosing(self._connected(was_lost)) as items:
                    async for item in items:
                        yield item
                if self._cursor.finished:
                    return
                error: ClientError = Unreachable(
                    f"{self._connection.endpoint} ended the stream.",
                    next_step="It is opened again.",
                )
            except ClientError as e:
                if is_final(e):
                    raise
                error = e
            was_lost = True
            wait = self._next_wait(error)
            self._hurry.clear()
            yield Lost(error, wait)
            await self._pause(wait)

    async def _connected(self, was_lost: bool) -> AsyncGenerator[Item | Restored]:
        place = self._cursor.place
        async with self._connection.listen(self._path, place) as messages:
            self._cursor.connected()
            if was_lost:
                yield Restored(resumed=place is not None)
            async for message in messages:
                for item in self._cursor.take(message):
                    self._failures = 0
                    yield item
                if self._cursor.finished:
                    return

    def _next_wait(self, error: ClientError) -> float:
        wait = self._pace.delay(self._failures)
        self._failures += 1
        asked = error.retry_after if isinstance(error, ApiError) else None
        return max(wait, asked or 0.0)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
