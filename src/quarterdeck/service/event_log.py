"""The event log of every workspace: stored with an index, then published to its streams.

What is published was committed before, in the order of the index. See `broadcast` for how a
stream joins the two without a gap.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from quarterdeck.service.broadcast import Broadcasts, Subscription
from quarterdeck.service.db.database import Database
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.events import NewEvent, StoredEvent, last_index, read_after
from quarterdeck.wire.base import utc_now

T = TypeVar("T")
Observer = Callable[[str, Sequence[StoredEvent]], None]
"""Told of a workspace's new events after their commit, on the event loop; must be quick."""

PING_SECONDS = 15.0


class EventLog:
    """Appends to the log, reads from it, and follows it."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime] = utc_now,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._observers: list[Observer] = []
        self._broadcasts = Broadcasts(self.read_after, ping_seconds)

    async def append(
        self,
        workspace_id: str,
        events: Sequence[NewEvent],
        also: Callable[[Connection], None] | None = None,
    ) -> list[int]:
        """Appends events and returns their indices (from 1, without gaps), durable and published.

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
        """Runs `fn` as `Database.write` does, with a writer that can append events as well.

        `writer.connection` is the connection; `writer.append(workspace_id, events)` stores events
        within the same transaction. They are published after its commit.
        """

        def run(connection: Connection) -> tuple[T, LogWriter]:
            writer = LogWriter(connection, self._clock)
            return fn(writer), writer

        def publish(done: tuple[T, LogWriter]) -> None:
            for stored in done[1].stored:
                self._broadcasts.publish(*stored)
                for observer in self._observers:
                    observer(*stored)

        result, _ = await self._database.write(run, publish)
        return result

    def observe(self, observer: Observer) -> None:
        """Tells an observer of every event from now on."""
        self._observers.append(observer)

    async def read_after(self, workspace_id: str, index: int, limit: int) -> list[StoredEvent]:
        """Up to `limit` events with a higher index, in order."""
        return await self._database.read(lambda c: read_after(c, workspace_id, index, limit))

    async def last_index(self, workspace_id: str) -> int:
        """Index of the newest event, 0 when there is none (or no such workspace)."""
        return await self._database.read(lambda c: last_index(c, workspace_id))

    async def subscribe(self, workspace_id: str, after: int | None) -> Subscription:
        """Opens a stream of frames: everything after an index, then live; or live only.

        Whatever is appended once this has returned is in the stream. Iterate it for chunks of up
        to 64 joined frames and for pings; it ends when the workspace is dropped, the service
        stops, or `aclose` is called, which its reader must do.
        """
        return await self._broadcasts.open(workspace_id, after, self.last_index)

    def listeners(self, workspace_id: str) -> int:
        """How many streams are open on a workspace."""
        return self._broadcasts.listeners(workspace_id)

    def drop(self, workspace_id: str) -> None:
        """Ends the streams of a deleted workspace. Call after the delete was committed."""
        self._broadcasts.drop(workspace_id)

    def end_streams(self) -> None:
        """Ends every stream, and each that is opened later, at once. Part of stopping."""
        self._broadcasts.close()
