"""The root of the cockpit's state.

    client -> Deck (lookout, a feed per followed replica, outbox) -> Change -> widgets

`run` owns all background work. Commands are coroutines that raise the client's errors to whoever
asked; what happens in the background is told as changes.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError, NotConnected
from quarterdeck.store.automations import Automations
from quarterdeck.store.changes import (
    Change,
    ChatChanged,
    ConnectionChanged,
    ListChanged,
    ReplicaChanged,
    ReplicaGone,
)
from quarterdeck.store.chat_commands import ChatCommands
from quarterdeck.store.chats import ChatState
from quarterdeck.store.commands import Commands
from quarterdeck.store.connection import ConnectionState, Phase
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.following import Following
from quarterdeck.store.lookout import Lookout, Revive
from quarterdeck.store.narrowing import Narrowing
from quarterdeck.store.outbox import Outbox
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signal import Signal
from quarterdeck.store.tasks import Tasks
from quarterdeck.store.terminals import TerminalMemory
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.replicas import Replica

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.changes_review import Reviews
    from quarterdeck.store.exec_runs import ExecRuns


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
        """Whether the list was read since the start."""
        self.on_screen: UUID | None = None
        self.environment_names: dict[UUID, str] = {}
        """Read when the list is narrowed by them."""
        self.terminals = TerminalMemory()
        self._narrowing = Narrowing()
        self._seen, self._since = disk.seen(), disk.since()
        self.attended: Callable[[], bool] = lambda: True
        """Whether what is on the screen is before the person's eyes."""
        self._tasks = Tasks()
        self.following = Following(self._tasks, self)
        self.commands = Commands(self)
        self.chat_commands = ChatCommands(self)
        self.automations = Automations(self)
        self.lookout = Lookout(self.connection, self, revive)
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

    @cached_property
    def reviews(self) -> "Reviews":
        """The changes of replicas; made when they are first looked at."""
        from quarterdeck.store.changes_review import Reviews

        return Reviews(self)

    @cached_property
    def exec_runs(self) -> "ExecRuns":
        """Single commands that were run in replicas; made with the first."""
        from quarterdeck.store.exec_runs import ExecRuns

        return ExecRuns(self, self._tasks)

    async def run(self) -> None:
        """Follows the service until canceled. To be called once."""
        self.outbox.load()
        await self.lookout.wait_for_service()
        self._client = self._make_client()
        async with self._client, self._tasks:
            self._follow_automations()
            await self.lookout.run()

    # what others read

    @property
    def online(self) -> bool:
        """Whether the service answered the last time it was asked."""
        return self.connection.phase == Phase.ONLINE

    def ordered(self) -> list[ReplicaState]:
        """Replicas, those who need the person first."""
        return sorted(self.replicas.values(), key=ReplicaState.sort_key)

    def narrowed(self, states: Iterable[ReplicaState]) -> list[ReplicaState]:
        """Those of them that the list shows."""
        names = self.environment_names
        return [state for state in states if self._narrowing.shows(state, names)]

    def narrow(self, narrowing: Narrowing) -> None:
        """Shows only these from now on."""
        self._narrowing = narrowing
        used = {state.record.environment_id for state in self.replicas.values()} - {None}
        new = not used <= self.environment_names.keys()
        if narrowing.needs_names and new and self._client is not None:
            self._tasks.start("environment names", self._read_environment_names())
        self.publish(ListChanged())

    def chat(self, replica_id: UUID, chat_id: UUID) -> ChatState | None:
        """A chat that is known, or None."""
        state = self.replicas.get(replica_id)
        return state.chats.get(chat_id) if state else None

    # what the screen says

    def look_at(self, replica_id: UUID | None) -> None:
        """The replica that is on the screen now: it is followed, and what it did is seen."""
        before, self.on_screen = self.on_screen, replica_id
        left = self.replicas.get(before) if before and before != replica_id else None
        if left is not None and self._client is not None:
            self.following.review(left)
        state = self.replicas.get(replica_id) if replica_id else None
        if state is None:
            return
        self.seen(state)
        if self._client is not None:
            self.following.follow(state)
            if state.record.environment is None:
                self._tasks.start(("environment", state.id), self._read_environment(state))

    def reconnect_now(self) -> None:
        """Tries again at once, instead of waiting for the next try."""
        self.lookout.poke()
        self.following.reconnect_now()
        self.automations.reconnect_now()

    def add(self, record: Replica) -> ReplicaState:
        """Takes in a replica that was just made, before the next look at the list."""
        state = self._take(record)
        self.publish(ListChanged())
        return state

    # what feeds, outbox and commands tell

    def publish(self, change: Change) -> None:
        self.changed.publish(change)

    def looks_at(self, replica_id: UUID) -> bool:
        return self.on_screen == replica_id

    def sees(self, replica_id: UUID) -> bool:
        return self.on_screen == replica_id and self.attended()

    def come_back(self) -> None:
        """The person looks at the screen again: what ended there meanwhile is seen now."""
        state = self.replicas.get(self.on_screen) if self.on_screen else None
        if state is not None and state.unseen and self.attended():
            self.seen(state)

    def seen(self, state: ReplicaState) -> None:
        """The person has seen what the replica did."""
        unseen = state.unseen
        state.seen_at = self._seen[state.id] = utc_now()
        if unseen:
            self.disk.keep_seen(self._seen)
            self.publish(ListChanged())

    def status_changed(self, state: ReplicaState) -> None:
        """A replica is in another state: it may need to be followed no longer."""
        self._tasks.start(("review", state.id), self._review(state))

    def look_again(self) -> None:
        """There is a replica that somebody else made."""
        self.lookout.poke()

    def line_lost(self, error: Exception) -> None:
        """A stream broke: the lookout finds out what is wrong."""
        if self.online:
            self.lookout.poke()

    def refused(self, error: ClientError) -> None:
        self.lookout.refused(error)

    def gone(self, replica_id: UUID, *, elsewhere: bool = True) -> None:
        """A replica is no more; `elsewhere` when nobody deleted it here."""
        elsewhere = elsewhere and replica_id not in self.commands.deleting
        self.following.leave(replica_id)
        state = self.replicas.pop(replica_id, None)
        if state is not None:
            self.publish(ReplicaGone(replica_id, state.name, elsewhere))
            self.publish(ListChanged())

    def want_queue(self, replica_id: UUID, chat_id: UUID) -> None:
        """Reads a chat's queue soon, once for many wishes."""
        self._tasks.start(("queue", chat_id), self._read_queue(replica_id, chat_id))

    def want_flush(self) -> None:
        """Sends what waits in the outbox soon."""
        self._tasks.start("outbox", self.outbox.flush())

    # what the lookout tells

    def take_list(self, found: Iterable[Replica]) -> None:
        """Takes over the list of replicas. What a live feed knows is newer than any list."""
        records = {record.id: record for record in found}
        fresh = not self.listed or any(id not in self.replicas for id in records)
        self.listed = True
        for record in records.values():
            feed = self.following.feed(record.id)
            if feed is None or not feed.live:
                self.following.review(self._take(record))
        for gone in [
            id for id in self.replicas if id not in records and id not in self.commands.deleting
        ]:
            self.gone(gone)
        if fresh:
            self.publish(ListChanged())

    def back_online(self) -> None:
        self.following.reconnect_now()
        self._follow_automations()
        self.want_flush()

    def connection_changed(self) -> None:
        self.publish(ConnectionChanged())

    # background work

    async def _review(self, state: ReplicaState) -> None:
        # In a task of its own: the feed that told of the state may be the one to end.
        if state.id in self.replicas:
            self.following.review(state)

    def _follow_automations(self) -> None:
        self.automations.reconnect_now()
        self._tasks.start("automations", self.automations.run())

    async def _read_environment(self, state: ReplicaState) -> None:
        try:
            detail = await self.client.replicas.get(state.id, include=("environment",))
        except ClientError as error:
            self.line_lost(error)
            return
        state.record.environment = detail.environment
        state.environment_read = True
        self.publish(ReplicaChanged(state.id))

    async def _read_environment_names(self) -> None:
        try:
            found = await self.client.environments.list(scope="all")
        except ClientError as error:
            self.line_lost(error)
            return
        names = {one.id: one.name for one in found}
        if names != self.environment_names:
            self.environment_names = names
            self.publish(ListChanged())

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

    def _seen_at(self, record: Replica) -> datetime | None:
        seen = self._seen.get(record.id)
        used = record.last_activity_at is not None and record.last_activity_at > record.created_at
        # One that was never looked at may have done its work while no cockpit was open.
        return self._since if seen is None and used else seen

    def _take(self, record: Replica) -> ReplicaState:
        state = self.replicas.get(record.id)
        if state is None:
            state = ReplicaState.from_summary(record, self._seen_at(record))
            self.replicas[record.id] = state
        elif state.take_summary(record):
            self.publish(ReplicaChanged(record.id))
            self.publish(ListChanged())
        return state


def open_disk(directory: Path, endpoint: str) -> ClientDisk:
    """The directory of an endpoint's drafts: one per endpoint, named so that it is a file name."""
    name = "".join(c if c.isalnum() or c in "-._" else "_" for c in endpoint)
    return ClientDisk(directory / (name or "local"))
