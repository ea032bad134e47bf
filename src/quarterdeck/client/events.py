"""The event stream of one replica."""

from collections import deque
from collections.abc import Iterable
from uuid import UUID

from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from quarterdeck.client.connection import Connection
from quarterdeck.client.errors import ProtocolError
from quarterdeck.client.items import EventItem, Malformed, Received, Restored
from quarterdeck.client.retry import STREAM_PACE, Pace
from quarterdeck.client.stream import ResumingStream
from quarterdeck.wire.events import Event

REMEMBERED = 4096
"""Event ids that are kept to know a repeat by."""

SHOWN = 200
"""Characters of a message that could not be read that are passed on."""

EventStream = ResumingStream[EventItem]


class Events:
    """`/v1/replica/{id}/events`."""

    def __init__(self, connection: Connection, pace: Pace = STREAM_PACE) -> None:
        self._connection = connection
        self._pace = pace

    def stream(self, replica_id: UUID, after: int | None = None) -> EventStream:
        """Everything after an index of the replica's log, then live; without one, live only.

        Yields `Received`, `Malformed`, `Lost`, `Restored`. Refusals (401, 404, ...) are raised.
        """
        return ResumingStream(
            self._connection, f"/v1/replica/{replica_id}/events", EventCursor(after), self._pace
        )


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
            event = Event.model_validate_json(message.data)
        except ValidationError:
            self._advance(message.id)
            error = ProtocolError("An event could not be read.", next_step="It is left out.")
            return (Malformed(error, message.data[:SHOWN]),)
        if event.id in self._ids:
            return ()
        self._remember(event.id)
        return self._numbered(message.id, event)

    def _numbered(self, place: str, event: Event) -> Iterable[EventItem]:
        # The decoder repeats the last `id:` for messages that carry none.
        if not place or place == self._place:
            return (Received(None, event),)
        last = self._last
        index = int(place) if place.isdecimal() else None
        if index is not None and last is not None and index <= last:
            return ()
        self._advance(place)
        at_start, self._at_start = self._at_start, False
        received = Received(index, event)
        if at_start and index is not None and last is not None and index > last + 1:
            return (Restored(resumed=False), received)
        return (received,)

    def _advance(self, place: str) -> None:
        if not place:
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
