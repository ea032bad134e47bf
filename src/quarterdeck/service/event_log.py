"""The event log: written, read and relayed.

The event log of every workspace: stored with an index, then published to its streams.

Published events were committed before, in the order of the index. See `streams` for how a
stream joins the two without a gap.
"""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, String, bindparam, insert, or_, update

from quarterdeck.sandboxes.port import PROCESS
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import chats, events, workspaces
from quarterdeck.service.errors import UnknownWorkspaceError
from quarterdeck.service.event_rows import NewEvent, StoredEvent, last_index, read_after
from quarterdeck.service.formats import NUL, moment_text, storable
from quarterdeck.service.streams import Broadcasts, Subscription
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.events import EventType

_count_up = (
    update(workspaces)
    .where(
        workspaces.c.id == bindparam("of"),
        or_(
            workspaces.c.driver == PROCESS,
            workspaces.c.home_id.is_(None),
            workspaces.c.home_id == bindparam("home", type_=String),
        ),
    )
    .values(
        next_event_index=workspaces.c.next_event_index + bindparam("all"),
        next_history_index=workspaces.c.next_history_index + bindparam("agent"),
    )
    .returning(workspaces.c.next_event_index, workspaces.c.next_history_index)
)
_count_chat_up = (
    update(chats)
    .where(chats.c.id == bindparam("of"), chats.c.workspace_id == bindparam("in"))
    .values(next_history_index=chats.c.next_history_index + bindparam("agent"))
    .returning(chats.c.next_history_index)
)
_store = insert(events)


Follower = Callable[[Connection, str, Sequence[NewEvent], str], None]
"""Called in the transaction that stores events of a workspace, after they were stored, with the
current time as text. Must be quick when the events do not concern it."""


class LogWriter:
    """The event log within one write. Appended events are in `stored`, in order."""

    def __init__(
        self,
        connection: Connection,
        clock: Callable[[], datetime],
        followers: Sequence[Follower],
        home_id: str | None = None,
    ) -> None:
        self.connection = connection
        self._home_id = home_id
        self._followers = followers
        self.stored: list[tuple[str, list[StoredEvent]]] = []
        self.now = clock

    def append(self, workspace_id: str, new: Sequence[NewEvent]) -> list[int]:
        """Append events; they are published after the commit. Returns their indices.

        Raises:
            UnknownWorkspaceError: no workspace has this id (it was deleted), or another service has it.
        """
        if not new:
            return []
        of_chats = [_chat_of(event) for event in new]
        first, first_history = self._reserve(workspace_id, len(new), of_chats)
        places = self._places(workspace_id, of_chats, first_history)
        stored = [self._stored(first + n, event) for n, event in enumerate(new)]
        rows = [_row(workspace_id, s, place) for s, place in zip(stored, places, strict=True)]
        self.connection.execute(_store, rows)
        now = moment_text(self.now())
        for follow in self._followers:
            follow(self.connection, workspace_id, new, now)
        self.stored.append((workspace_id, stored))
        return [event.index for event in stored]

    def _reserve(
        self, workspace_id: str, count: int, of_chats: list[str | None]
    ) -> tuple[int, int]:
        """Reserve the first free indices, of the log and of the workspace's history.

        On a database with several writers the updated row is also the lock that keeps readers from
        seeing a later index before an earlier one.
        """
        agent = sum(chat is not None for chat in of_chats)
        row = self.connection.execute(
            _count_up,
            {"of": workspace_id, "home": self._home_id, "all": count, "agent": agent},
        ).first()
        if row is None:
            raise UnknownWorkspaceError(f"There is no workspace {workspace_id}.")
        return row.next_event_index - count, row.next_history_index - agent

    def _places(
        self, workspace_id: str, of_chats: list[str | None], first: int
    ) -> list[tuple[str | None, int | None, int | None]]:
        """Return each event's chat, its place in the workspace's history, and in the chat's."""
        following = {
            chat: self._reserve_chat(workspace_id, chat, of_chats.count(chat))
            for chat in dict.fromkeys(of_chats)
            if chat is not None
        }
        places: list[tuple[str | None, int | None, int | None]] = []
        for chat in of_chats:
            if chat is None:
                places.append((None, None, None))
                continue
            place = following[chat]
            # Without a place the chat is not of this workspace.
            places.append((None if place is None else chat, first, place))
            first += 1
            following[chat] = None if place is None else place + 1
        return places

    def _reserve_chat(self, workspace_id: str, chat: str, count: int) -> int | None:
        following = self.connection.execute(
            _count_chat_up, {"of": chat, "in": workspace_id, "agent": count}
        ).scalar()
        return None if following is None else following - count

    def _stored(self, index: int, event: NewEvent) -> StoredEvent:
        ts = moment_text(event.ts or self.now())
        # Pure ASCII: some readers of event streams split lines at Unicode's own separators.
        payload = _json(event.payload)
        return StoredEvent(index, event.id or str(uuid4()), ts, storable(event.type), payload)


def _json(payload: dict[str, Any]) -> str:
    try:
        return json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number like 1e999, which is not JSON when it is written again
        finite = json.loads(json.dumps(payload), parse_constant=lambda _: None)
        return json.dumps(finite, separators=(",", ":"))


def _chat_of(event: NewEvent) -> str | None:
    """Return the chat whose history an event belongs to, None when it is not history."""
    chat = event.payload.get("chatId") if event.type == EventType.CHAT_TURN_DELTA else None
    # An invalid id belongs to no chat, and may contain characters that no column can store.
    return chat if isinstance(chat, str) and NUL not in chat else None


def _row(
    workspace_id: str, event: StoredEvent, place: tuple[str | None, int | None, int | None]
) -> dict[str, Any]:
    chat_id, history_index, chat_history_index = place
    return {
        "workspace_id": workspace_id,
        "index": event.index,
        "id": event.id,
        "ts": event.ts,
        "type": event.type,
        "payload_json": event.payload_json,
        "chat_id": chat_id,
        "history_index": history_index,
        "chat_history_index": chat_history_index,
    }


T = TypeVar("T")
Observer = Callable[[str, Sequence[StoredEvent]], None]
"""Notified of a workspace's new events after their commit, on the event loop; must be quick."""

PING_SECONDS = 15.0


class EventLog:
    """Appends to the log, reads from it, and follows it."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime] = utc_now,
        ping_seconds: float = PING_SECONDS,
        followers: Sequence[Follower] = (),
        home_id: str | None = None,
    ) -> None:
        self._database = database
        self._home_id = home_id
        self._followers = followers
        self._clock = clock
        self._observers: list[Observer] = []
        self._at_end: list[Callable[[str], None]] = []
        self._broadcasts = Broadcasts(self.read_after, ping_seconds)

    async def append(
        self,
        workspace_id: str,
        events: Sequence[NewEvent],
        also: Callable[[Connection], None] | None = None,
    ) -> list[int]:
        """Append events and return their indices (from 1, without gaps), durable and published.

        `chat.turn.delta` events also get their places in the history of the workspace and of the
        chat. `also` runs in the same transaction, before the events are stored, so a chat it makes
        can have history in the same call; it may run twice (see `Database.write`).

        Raises:
            UnknownWorkspaceError: no workspace has this id (it was deleted).
            StorageError: nothing was kept.
        """

        def run(writer: LogWriter) -> list[int]:
            if also is not None:
                also(writer.connection)
            return writer.append(workspace_id, events)

        return await self.write(run)

    async def write(self, fn: Callable[[LogWriter], T]) -> T:
        """Run `fn` as `Database.write` does, with a writer that can append events as well.

        `writer.connection` is the connection; `writer.append(workspace_id, events)` stores events
        within the same transaction. They are published after its commit.
        """

        def run(connection: Connection) -> tuple[T, LogWriter]:
            writer = LogWriter(connection, self._clock, self._followers, self._home_id)
            return fn(writer), writer

        def publish(done: tuple[T, LogWriter]) -> None:
            for stored in done[1].stored:
                self._broadcasts.publish(*stored)
                for observer in self._observers:
                    observer(*stored)

        result, _ = await self._database.write(run, publish)
        return result

    def observe(self, observer: Observer) -> None:
        """Notify an observer of every event from now on."""
        self._observers.append(observer)

    def observe_ends(self, observer: Callable[[str], None]) -> None:
        """Notify an observer of each workspace that is dropped from now on."""
        self._at_end.append(observer)

    async def read_after(self, workspace_id: str, index: int, limit: int) -> list[StoredEvent]:
        """Return the next events with a higher index, in order: up to `limit`, fewer of long ones."""
        return await self._database.read(lambda c: read_after(c, workspace_id, index, limit))

    async def last_index(self, workspace_id: str) -> int:
        """Return the index of the newest event, 0 when there is none (or no such workspace)."""
        return await self._database.read(lambda c: last_index(c, workspace_id))

    async def subscribe(self, workspace_id: str, after: int | None) -> Subscription:
        """Open a stream of frames: all after an index, then live; or live only.

        Every event appended after this has returned is in the stream. Iterate it for chunks of up
        to 64 joined frames and for pings; it ends when the workspace is dropped, the service
        stops, or `aclose` is called, which its reader must do.
        """
        return await self._broadcasts.open(workspace_id, after, self.last_index)

    def listeners(self, workspace_id: str) -> int:
        """Return how many streams are open on a workspace."""
        return self._broadcasts.listeners(workspace_id)

    def drop(self, workspace_id: str) -> None:
        """End the streams of a deleted workspace, and what observes it. Call after the commit."""
        self._broadcasts.drop(workspace_id)
        for observer in self._at_end:
            observer(workspace_id)

    def end_streams(self) -> None:
        """End every stream, and each that is opened later, at once. Part of stopping."""
        self._broadcasts.close()
