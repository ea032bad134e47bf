"""The root of the cockpit's state.

    client -> Deck (list watcher, a feed per replica, outbox) -> Change -> widgets

`run` owns all background work. Commands are coroutines that raise the client's errors to whoever
asked; what happens in the background is told as changes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import (
    ClientError,
    Forbidden,
    NotConnected,
    NotFound,
    TimedOut,
    Unauthorized,
    Unreachable,
)
from quarterdeck.store.changes import (
    Change,
    ChatChanged,
    ConnectionChanged,
    ListChanged,
    ReplicaChanged,
    TranscriptChanged,
)
from quarterdeck.store.chats import ChatState
from quarterdeck.store.connection import ConnectionState, Phase
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.feed import PAGE, ReplicaFeed
from quarterdeck.store.outbox import Outbox
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signal import Signal
from quarterdeck.store.tasks import Tasks
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.replicas import Replica, WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

Revive = Callable[[], Awaitable[str | None]]
"""Sees to it that the embedded service runs; answers a sentence when it cannot."""

LIST_PERIOD = 20.0
"""Seconds between two looks for replicas that someone else made."""

FIRST_DELAY, LONGEST_DELAY = 0.25, 10.0

FOLLOWED = {WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING, WorkspaceStatus.ERROR}


class Deck:
    """Replicas, chats and the connection, as plain state with one signal of changes."""

    def __init__(
        self,
        make_client: "Callable[[], Client]",
        *,
        endpoint: str,
        disk: ClientDisk,
        revive: Revive | None = None,
    ) -> None:
        """`make_client` is called once, when the service is there: it may need the service's key."""
        self._make_client = make_client
        self._client: Client | None = None
        self.disk = disk
        self.changed: Signal[Change] = Signal()
        self.connection = ConnectionState(endpoint)
        self.replicas: dict[UUID, ReplicaState] = {}
        self.listed = False
        self.on_screen: UUID | None = None
        self._revive = revive
        self._seen = disk.seen()
        self._feeds: dict[UUID, ReplicaFeed] = {}
        self._poke = asyncio.Event()
        self._tasks = Tasks()
        self.outbox = Outbox(disk, self)

    @property
    def client(self) -> "Client":
        """The client of the service.

        Raises:
            NotConnected: the service has not been reached yet.
        """
        if self._client is None:
            raise NotConnected("The service is still starting.", next_step="Wait a moment.")
        return self._client

    async def run(self) -> None:
        """Follows the service until canceled."""
        self.outbox.load()
        await self._begin()
        async with self.client, self._tasks:
            await self._watch_service()

    async def _begin(self) -> None:
        while (problem := await self._revived()) is not None:
            self._phase(Phase.RECONNECTING, problem)
            self._poke.clear()
            await self._pause(LONGEST_DELAY)
        self._client = self._make_client()

    async def _revived(self) -> str | None:
        return await self._revive() if self._revive is not None else None

    # what others read

    def ordered(self) -> list[ReplicaState]:
        """Replicas, those who need the person first."""
        return sorted(self.replicas.values(), key=ReplicaState.sort_key)

    def chat(self, replica_id: UUID, chat_id: UUID) -> ChatState | None:
        """A chat that is known, or None."""
        state = self.replicas.get(replica_id)
        return state.chats.get(chat_id) if state else None

    # what the screen says

    def look_at(self, replica_id: UUID | None) -> None:
        """The replica that is on the screen now: it is followed, and what it did is seen."""
        self.on_screen = replica_id
        state = self.replicas.get(replica_id) if replica_id else None
        if state is None:
            return
        self.seen(state)
        self._follow(state)

    def reconnect_now(self) -> None:
        """Tries again at once, instead of waiting for the next try."""
        self._poke.set()
        for feed in self._feeds.values():
            feed.reconnect_now()

    # commands

    async def open_chat(self, replica_id: UUID, chat_id: UUID) -> None:
        """Loads a chat's newest page, once.

        Raises:
            ClientError: the history could not be read.
        """
        chat = self.chat(replica_id, chat_id)
        feed = self._feeds.get(replica_id)
        if chat is None or chat.transcript is not None or chat.loading:
            return
        if feed is None:
            feed = ReplicaFeed(self.client, self.replicas[replica_id], self)
        await feed.load(chat)

    async def load_older(self, replica_id: UUID, chat_id: UUID) -> None:
        """Loads the page before the oldest one.

        Raises:
            ClientError: the page could not be read.
        """
        chat = self.chat(replica_id, chat_id)
        if chat is None or chat.before_cursor is None or chat.loading:
            return
        cursor = chat.before_cursor
        page = await self.client.history.page(
            replica_id, chat_id=chat_id, limit=PAGE, before_cursor=cursor
        )
        if chat.before_cursor != cursor:
            return
        fold = chat.add_older(page)
        if fold is not None:
            self.publish(TranscriptChanged(replica_id, chat_id, fold))

    async def interrupt(self, replica_id: UUID, chat_id: UUID) -> bool:
        """Stops the running turn; False when none ran.

        Raises:
            ClientError: refused or unreachable.
        """
        return (await self.client.chats.interrupt(replica_id, chat_id)).interrupted

    async def respond(
        self, replica_id: UUID, chat_id: UUID, request_id: str, option_id: str
    ) -> None:
        """Answers a question or permission request of the agent.

        Raises:
            ClientError: refused, unreachable, or no longer awaited (`Conflict`).
        """
        await self.client.chats.respond(replica_id, chat_id, request_id, option_id=option_id)

    async def sleep(self, replica_id: UUID) -> None:
        """Puts a replica to sleep.

        Raises:
            ClientError: refused or unreachable.
        """
        await self.client.replicas.sleep(replica_id)

    async def wake(self, replica_id: UUID) -> None:
        """Wakes a replica, or tries again what failed.

        Raises:
            ClientError: refused or unreachable.
        """
        self._follow(self.replicas[replica_id])
        await self.client.replicas.wake(replica_id)
        self._poke.set()

    async def delete(self, replica_id: UUID) -> None:
        """Deletes a replica with its files and history.

        Raises:
            ClientError: refused or unreachable.
        """
        await self.client.replicas.delete(replica_id)
        self._drop(replica_id)

    def add(self, record: Replica) -> ReplicaState:
        """Takes in a replica that was just made, before the next look at the list."""
        state = self._take(record)
        self.publish(ListChanged())
        self._follow(state)
        return state

    # what feeds and the outbox tell (FeedOwner)

    def publish(self, change: Change) -> None:
        self.changed.publish(change)

    def looks_at(self, replica_id: UUID) -> bool:
        return self.on_screen == replica_id

    def seen(self, state: ReplicaState) -> None:
        """The person has seen what the replica did."""
        unseen = state.unseen
        state.seen_at = self._seen[state.id] = utc_now()
        if unseen:
            self.disk.save_seen(self._seen)
            self.publish(ListChanged())

    def line_lost(self, error: Exception) -> None:
        """A stream broke: the list watcher finds out what is wrong."""
        self._poke.set()

    def want_queue(self, replica_id: UUID, chat_id: UUID) -> None:
        """Reads a chat's queue soon, once for many wishes."""
        self._tasks.start(("queue", chat_id), self._read_queue(replica_id, chat_id))

    # background work

    async def _read_queue(self, replica_id: UUID, chat_id: UUID) -> None:
        chat = self.chat(replica_id, chat_id)
        if chat is None:
            return
        try:
            chat.take_queue((await self.client.messages.queue(replica_id, chat_id)).queue)
        except ClientError as error:
            self.line_lost(error)
            return
        self.publish(ChatChanged(replica_id, chat_id))

    async def _watch_service(self) -> None:
        delay = FIRST_DELAY
        while True:
            self._poke.clear()
            try:
                await self._look()
            except (Unreachable, TimedOut) as error:
                await self._lost(error, delay)
                await self._pause(delay)
                delay = min(delay * 2, LONGEST_DELAY)
            except ClientError as error:
                self._refused(error)
                await self._pause(LONGEST_DELAY)
            else:
                delay = FIRST_DELAY
                await self._pause(LIST_PERIOD)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._poke.wait(), seconds)
        except TimeoutError:
            return

    async def _look(self) -> None:
        found = [record async for record in self.client.replicas.all()]
        known = {record.id for record in found}
        changed = not self.listed
        for record in found:
            fresh = record.id not in self.replicas
            state = self._take(record)
            changed = changed or fresh
            if state.status in FOLLOWED or self.on_screen == state.id:
                self._follow(state)
        for gone in [replica_id for replica_id in self.replicas if replica_id not in known]:
            self._drop(gone)
        self.listed = True
        if changed:
            self.publish(ListChanged())
        if self.connection.phase != Phase.ONLINE:
            self.connection.latency_ms = await self._latency()
            self._phase(Phase.ONLINE, None)
            for feed in self._feeds.values():
                feed.reconnect_now()
            self._tasks.start("outbox", self.outbox.flush())

    async def _latency(self) -> float:
        begun = time.monotonic()
        await self.client.health.get()
        return (time.monotonic() - begun) * 1000

    def _take(self, record: Replica) -> ReplicaState:
        state = self.replicas.get(record.id)
        if state is None:
            state = ReplicaState.from_summary(record, self._seen.get(record.id))
            self.replicas[record.id] = state
        elif state.take_summary(record):
            self.publish(ReplicaChanged(record.id))
            self.publish(ListChanged())
        return state

    def _drop(self, replica_id: UUID) -> None:
        self._tasks.stop(("feed", replica_id))
        self._feeds.pop(replica_id, None)
        if self.replicas.pop(replica_id, None) is not None:
            self.publish(ListChanged())

    def _follow(self, state: ReplicaState) -> None:
        key = ("feed", state.id)
        if self._tasks.busy(key):
            return
        feed = self._feeds[state.id] = ReplicaFeed(self.client, state, self)
        self._tasks.start(key, self._run_feed(state.id, feed))

    async def _run_feed(self, replica_id: UUID, feed: ReplicaFeed) -> None:
        try:
            await feed.run()
        except NotFound:
            self._drop(replica_id)
        except (Unauthorized, Forbidden) as error:
            self._refused(error)
        except ClientError as error:
            self.line_lost(error)
        finally:
            if self._feeds.get(replica_id) is feed:
                del self._feeds[replica_id]

    async def _lost(self, error: ClientError, delay: float) -> None:
        if self.connection.phase != Phase.RECONNECTING:
            self.connection.lost_at = time.monotonic()
            self._phase(Phase.RECONNECTING, str(error))
        self.connection.retry_at = time.monotonic() + delay
        problem = await self._revived()
        if problem is not None and problem != self.connection.problem:
            self._phase(Phase.RECONNECTING, problem)

    def _refused(self, error: ClientError) -> None:
        self._phase(Phase.REFUSED, str(error))

    def _phase(self, phase: Phase, problem: str | None) -> None:
        self.connection.phase = phase
        self.connection.problem = problem
        if phase == Phase.ONLINE:
            self.connection.lost_at = self.connection.retry_at = None
        self.publish(ConnectionChanged())


def open_disk(directory: Path, endpoint: str) -> ClientDisk:
    """The directory of an endpoint's drafts: one per endpoint, named so that it is a file name."""
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in endpoint)
    return ClientDisk(directory / (name or "local"))
