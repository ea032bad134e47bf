"""Streams that reconnect and continue where they were cut.

    connect -> messages -> cursor (reads, drops repeats, notes the place) -> items
       ^                                               |
       └──── backoff <── ConnectionLost <── cut, 5xx ──┘      refused (401, 404, ...): raised

Event and terminal streams differ in their `StreamCursor`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from time import monotonic
from typing import Generic, Protocol, Self, TypeVar
from uuid import UUID

from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from quarterdeck.client.connection import AsyncResource, HttpConnection, bounded_json
from quarterdeck.client.error_mapping import STREAM_PACE, Backoff, is_final
from quarterdeck.client.errors import ClientError, ProtocolError, ResponseError, UnreachableError
from quarterdeck.client.stream_events import (
    ConnectionLost,
    ConnectionRestored,
    EventItem,
    Malformed,
    Received,
)
from quarterdeck.wire.base import Record
from quarterdeck.wire.events import Event

SHARE_SECONDS = 0.003
"""Time for messages that have arrived, and for what the reader does with them, before other tasks run."""

Item = TypeVar("Item")
ItemOut = TypeVar("ItemOut", covariant=True)


class StreamCursor(Protocol[ItemOut]):
    """Reads one stream's messages and keeps the place reached."""

    @property
    def place(self) -> str | None:
        """`Last-Event-ID` of the next request; None when the stream cannot be resumed."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the stream has announced its end."""
        ...

    def connected(self) -> None:
        """Note that a new connection starts at `place`."""
        ...

    def take(self, message: ServerSentEvent) -> Iterable[ItemOut]:
        """Return the items of a message, none for a repeat. Advances the place.

        Raises:
            ClientError: this connection cannot continue; a new one can.
        """
        ...


class ResumingStream(AsyncResource, Generic[Item]):
    """An async iterator over items, `ConnectionLost` and `ConnectionRestored`, until it is closed or refused.

    With `announced` the first connection yields a `ConnectionRestored` too: state read after it misses
    nothing. Use it as an async context manager, so that its connection is closed with the block. It has one
    reader; canceling a reader that waits ends it.
    """

    def __init__(
        self,
        connection: HttpConnection,
        path: str,
        cursor: StreamCursor[Item],
        pace: Backoff = STREAM_PACE,
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

    async def __anext__(self) -> Item | ConnectionLost | ConnectionRestored:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Close the connection. Safe to call twice."""
        await self._items.aclose()

    def reconnect_now(self) -> None:
        """Skip the wait after a loss: try again at once."""
        self._hurry.set()

    async def _run(self) -> AsyncGenerator[Item | ConnectionLost | ConnectionRestored]:
        was_lost = self._announced
        while True:
            try:
                async with aclosing(self._connected(was_lost)) as items:
                    async for item in items:
                        yield item
                if self._cursor.finished:
                    return
                error: ClientError = UnreachableError(
                    f"{self._connection.endpoint} ended the stream.",
                    next_step="Reconnecting.",
                )
            except ClientError as e:
                if is_final(e):
                    raise
                error = e
            was_lost = True
            wait = self._next_wait(error)
            self._hurry.clear()
            yield ConnectionLost(error, wait)
            await self._pause(wait)

    async def _connected(self, was_lost: bool) -> AsyncGenerator[Item | ConnectionRestored]:
        place = self._cursor.place
        async with self._connection.listen(self._path, place) as messages:
            self._cursor.connected()
            if was_lost:
                yield ConnectionRestored(resumed=place is not None)
            started = monotonic()
            async for message in messages:
                if monotonic() - started > SHARE_SECONDS:
                    await asyncio.sleep(0)
                    started = monotonic()
                for item in self._cursor.take(message):
                    self._failures = 0
                    yield item
                if self._cursor.finished:
                    return

    def _next_wait(self, error: ClientError) -> float:
        wait = self._pace.delay(self._failures)
        self._failures += 1
        retry_after = error.retry_after if isinstance(error, ResponseError) else None
        return max(wait, retry_after or 0.0)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()


REMEMBERED = 4096
"""Event ids kept to detect repeats."""
LONGEST_ID = 200
"""Longest id of an event, and of a place in a stream, that is kept."""

SHOWN = 200
"""Characters kept of a message that could not be read."""

EventStream = ResumingStream[EventItem]


class EventsApi:
    """`/v1/replica/{id}/events`."""

    def __init__(self, connection: HttpConnection, pace: Backoff = STREAM_PACE) -> None:
        self._connection = connection
        self._pace = pace

    def stream(self, replica_id: UUID, after: int | None = None) -> EventStream:
        """Return everything after an index of the replica's log, then live; without one, live only.

        Yields `Received`, `Malformed`, `ConnectionLost`, `ConnectionRestored`. Refusals (401, 404, ...) are raised.
        """
        return ResumingStream(
            self._connection, f"/v1/replica/{replica_id}/events", EventCursor(after), self._pace
        )


class ChangesApi:
    """`/v1/automations/events`: changes of automations, of their runs, and of the list of replicas."""

    def __init__(self, connection: HttpConnection, pace: Backoff = STREAM_PACE) -> None:
        self._connection = connection
        self._pace = pace

    def stream(self, after: int | None = None) -> EventStream:
        """Return the changes after an index, then live; without one, live only.

        Yields as the stream of a replica does, and a `ConnectionRestored` at its first connection too:
        what is read then misses nothing. Types are those of `AutomationEventType`.
        """
        path = "/v1/automations/events"
        return ResumingStream(
            self._connection, path, EventCursor(after), self._pace, announced=True
        )

    async def has_automations(self) -> bool:
        """Return whether there are automations, without the models that reading them needs."""
        found = await self._connection.call("GET", "/v1/automations", _Counted, query={"limit": 1})
        return found.total > 0


class _Counted(Record):
    """How many records a list has."""

    total: int


class EventCursor:
    """The place in a replica's log, by the stream's `id:` lines where it has them."""

    def __init__(self, after: int | None = None) -> None:
        self._last = after
        self._place = None if after is None else str(after)
        self._at_start = True
        self._ids: set[str] = set()
        self._order: deque[str] = deque()

    @property
    def place(self) -> str | None:
        return self._place

    @property
    def finished(self) -> bool:
        return False

    def connected(self) -> None:
        self._at_start = True

    def take(self, message: ServerSentEvent) -> Iterable[EventItem]:
        if not message.data:
            return ()
        try:
            content = bounded_json(message.data.encode(errors="replace"), "An event")
            event = Event.model_validate_json(content)
        except (ValidationError, ProtocolError) as error:
            self._advance(message.id)
            return (left_out(error, "An event could not be read.", message),)
        if event.id in self._ids:
            return ()
        self._remember(event.id[:LONGEST_ID])
        return self._numbered(message.id, event)

    def _numbered(self, place: str, event: Event) -> Iterable[EventItem]:
        # The decoder repeats the last `id:` for messages that carry none.
        if not is_place(place) or place == self._place:
            return (Received(None, event),)
        last = self._last
        index = int(place) if place.isdecimal() else None
        if index is not None and last is not None and index <= last:
            return ()
        self._advance(place)
        at_start, self._at_start = self._at_start, False
        received = Received(index, event)
        if at_start and index is not None and last is not None and index > last + 1:
            return (ConnectionRestored(resumed=False), received)
        return (received,)

    def _advance(self, place: str) -> None:
        if not is_place(place):
            return
        if place.isdecimal():
            index = int(place)
            if self._last is not None and index <= self._last:
                return
            self._last = index
        self._place = place

    def _remember(self, event_id: str) -> None:
        self._ids.add(event_id)
        self._order.append(event_id)
        if len(self._order) > REMEMBERED:
            self._ids.discard(self._order.popleft())


def left_out(
    error: ValidationError | ProtocolError, text: str, message: ServerSentEvent
) -> Malformed:
    """Return the item for a message that could not be read; `text` says so where the error does not."""
    reason = error.message if isinstance(error, ProtocolError) else text
    return Malformed(ProtocolError(reason, next_step="It is left out."), message.data[:SHOWN])


def is_place(text: str) -> bool:
    """Return whether a text can be sent back as the place in a stream."""
    return 0 < len(text) <= LONGEST_ID and text.isascii() and text.isprintable()
