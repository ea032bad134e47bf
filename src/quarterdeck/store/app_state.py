"""The state of the cockpit: its view of the service, kept up to date."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError, NotConnectedError
from quarterdeck.store.changes import ChangeFeed
from quarterdeck.store.chats import ChatCommands, ChatState
from quarterdeck.store.commands import Commands
from quarterdeck.store.connection_monitor import ConnectionMonitor, Revive
from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.event_reducer import Subscriptions
from quarterdeck.store.outbox import Outbox
from quarterdeck.store.pull_requests import PullRequestStore
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import (
    Change,
    ChatChange,
    ConnectionChanged,
    KeyedTasks,
    ListChanged,
    ReplicaChanged,
    ReplicaGone,
    Signal,
)
from quarterdeck.store.status import ConnectionPhase, ConnectionState
from quarterdeck.store.terminals import TerminalMemory
from quarterdeck.wire.agents import RELEASED
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.replicas import Replica

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.automations import AutomationStore
    from quarterdeck.store.exec_runs import ExecRuns
    from quarterdeck.store.review import Reviews


class AppState:
    """Replicas, chats and the connection, as plain state with one signal of changes."""

    def __init__(
        self,
        make_client: "Callable[[], Client]",
        *,
        endpoint: str,
        disk: ClientDisk,
        revive: Revive | None = None,
        name: str = "",
        beside: bool = False,
    ) -> None:
        """`make_client` is called when the service is running: it may need the service's key.

        `name` tells the service from others; `beside` is whether it is shown beside the one in use.
        """
        self._make_client = make_client
        self._client: Client | None = None
        self.disk = disk
        self.changed: Signal[Change] = Signal()
        self.connection = ConnectionState(endpoint, name or endpoint)
        self._beside = beside
        self.replicas: dict[UUID, ReplicaState] = {}
        self.listed = False
        """Whether the list was read since the start."""
        self.on_screen: UUID | None = None
        self.directory: Path | None = None
        """The person's current directory, whose repository forms offer."""
        self.git_variables: Mapping[str, str] = {}
        """Variables by which `git-remote-qd` finds the service."""
        self.environment_names: dict[UUID, str] = {}
        """Read when the list is filtered or grouped by them."""
        self._agent_names: dict[str, str] | None = None
        """Of the configuration file's agents; read when a chat is opened."""
        self.terminals = TerminalMemory(disk)
        self._names_wanted = False
        self._seen, self._since = disk.seen(), disk.since()
        self.attended: Callable[[], bool] = lambda: True
        """Whether the person sees the screen."""
        self._tasks = KeyedTasks()
        self._queues_wanted: set[UUID] = set()
        self.following = Subscriptions(self, self._tasks)
        self.commands = Commands(self)
        self.chat_commands = ChatCommands(self)
        self.changes = ChangeFeed(self)
        self.known_automations: AutomationStore | None = None
        """None until some exist, or the person asks for them."""
        self.lookout = ConnectionMonitor(self, revive)
        self.outbox = Outbox(self)
        self.pull_requests = PullRequestStore(self, self._tasks)

    @property
    def client(self) -> "Client":
        """The client of the service.

        Raises:
            NotConnectedError: the service has not been reached yet.
        """
        if self._client is None:
            raise NotConnectedError(
                "The service is still starting.", next_step="Wait a few seconds."
            )
        return self._client

    @property
    def automations(self) -> "AutomationStore":
        """Automations; created on first use."""
        if self.known_automations is None:
            from quarterdeck.store.automations import AutomationStore

            self.known_automations = AutomationStore(self)
        return self.known_automations

    @property
    def automation_news(self) -> tuple[str, bool]:
        """The state of the automations in a few words, and whether one waits for the person."""
        if self.known_automations is None:
            return "", False
        summary = self.known_automations.summary()
        return summary.text, bool(summary.approval and not summary.failing)

    @cached_property
    def reviews(self) -> "Reviews":
        """The changes of replicas; created on first use."""
        from quarterdeck.store.review import Reviews

        return Reviews(self)

    @cached_property
    def exec_runs(self) -> "ExecRuns":
        """Single commands run in replicas; created on first use."""
        from quarterdeck.store.exec_runs import ExecRuns

        return ExecRuns(self, self._tasks)

    async def run(self) -> None:
        """Follow the service until canceled. Call it once."""
        self.outbox.load()
        self._client = await self.lookout.wait_for_service(self._make_client)
        async with self._client, self._tasks:
            self._follow_changes()
            await self.lookout.run()

    # read by other modules

    @property
    def online(self) -> bool:
        """Whether the service answered the last request."""
        return self.connection.phase == ConnectionPhase.ONLINE

    def want_names(self, wanted: bool) -> None:
        """Read the names of the environments that replicas use, from now on or no longer."""
        self._names_wanted = wanted
        self._read_names_soon()

    def _read_names_soon(self) -> None:
        """Read the names of environments if they are wanted and some are not known."""
        used = {state.record.environment_id for state in self.replicas.values()} - {None}
        new = not used <= self.environment_names.keys()
        if self._names_wanted and new and self._client is not None:
            self._tasks.start("environment names", self._read_environment_names())

    def agent_name(self, agent: str) -> str:
        """Return what an agent is called: its id, or the name that the configuration file gives it."""
        return (self._agent_names or {}).get(agent, agent)

    def read_agent_name_soon(self, agent: str) -> None:
        """Read what an agent is called, in the background."""
        if self._client is not None:
            self._tasks.start("agent names", self.read_agent_name(agent))

    async def read_agent_name(self, agent: str) -> None:
        """Read what an agent is called, with the names of all agents of the configuration file, once."""
        if self._agent_names is not None or agent in RELEASED:
            return
        try:
            agents = await self.client.agents.list()
        except ClientError:  # they keep their ids; the next chat tries again
            return
        self._agent_names = {agent.id: agent.name for agent in agents if agent.configured}
        if self._agent_names and self.on_screen is not None:
            self.publish(ReplicaChanged(self.on_screen))

    def chat(self, replica_id: UUID, chat_id: UUID) -> ChatState | None:
        """Return a chat that is known, or None."""
        state = self.replicas.get(replica_id)
        return state.chats.get(chat_id) if state else None

    # called by the screen

    def look_at(self, replica_id: UUID | None) -> None:
        """Follow the replica that is on the screen now; it is not marked as seen by that."""
        before, self.on_screen = self.on_screen, replica_id
        left = self.replicas.get(before) if before and before != replica_id else None
        if left is not None and self._client is not None:
            self.following.review(left)
        state = self.replicas.get(replica_id) if replica_id else None
        self.pull_requests.look_at(state if self._client is not None else None)
        if state is None:
            return
        if self._client is not None:
            self.following.follow(state)
            if state.record.environment is None:
                self._tasks.start(("environment", state.id), self._read_environment(state))

    def reconnect_now(self) -> None:
        """Try again at once, without waiting for the next try."""
        self.lookout.retry()
        self.following.reconnect_now()
        self.changes.reconnect_now()

    def add(self, record: Replica) -> ReplicaState:
        """Add a replica that was just created, before the list is read again."""
        state = self._take(record)
        self.publish(ListChanged())
        return state

    # called by feeds, outbox and commands

    def publish(self, change: Change) -> None:
        self.changed.publish(change)

    def looks_at(self, replica_id: UUID) -> bool:
        return self.on_screen == replica_id

    def sees(self, replica_id: UUID) -> bool:
        return self.on_screen == replica_id and self.attended()

    def mark_shown_as_seen(self) -> None:
        """Mark the replica on the screen as seen, now that the person sees the screen again."""
        state = self.replicas.get(self.on_screen) if self.on_screen else None
        if state is not None and state.unseen and self.attended():
            self.seen(state)

    def seen(self, state: ReplicaState) -> None:
        """Mark a replica as seen by the person."""
        unseen = state.unseen
        state.seen_at = self._seen[state.id] = utc_now()
        if unseen:
            self.disk.keep_seen(self._seen)
            self.publish(ListChanged())

    def status_changed(self, state: ReplicaState) -> None:
        """Note a new status of a replica: it may no longer need to be followed."""
        self._tasks.start(("review", state.id), self._review(state))

    def refresh_soon(self) -> None:
        """Read the list again: it has a replica that was created elsewhere."""
        self.lookout.poke()

    def connection_lost(self, error: Exception) -> None:
        """Let the connection monitor find out why a stream broke."""
        if self.online:
            self.lookout.poke()

    def refused(self, error: ClientError) -> None:
        self.lookout.refused(error)

    def remove(self, replica_id: UUID, *, elsewhere: bool = True) -> None:
        """Remove a replica that was deleted; `elsewhere` when this cockpit did not delete it."""
        elsewhere = elsewhere and replica_id not in self.commands.deleting
        self.following.leave(replica_id)
        state = self.replicas.pop(replica_id, None)
        if state is not None:
            self.publish(ReplicaGone(replica_id, state.name, elsewhere))
            self.publish(ListChanged())

    def want_queue(self, replica_id: UUID, chat_id: UUID) -> None:
        """Read a chat's queue soon, once for many calls, and again if it is being read already."""
        self._queues_wanted.add(chat_id)
        self._tasks.start(("queue", chat_id), self._read_queue(replica_id, chat_id))

    def want_flush(self) -> None:
        """Send the messages of the outbox soon."""
        self._tasks.start("outbox", self.outbox.flush())

    # called by the connection monitor

    def take_list(self, replicas: Iterable[Replica], before: Collection[UUID]) -> None:
        """Apply the list of replicas. The state of a live feed is newer than any list.

        Args:
            before: those known when the list was requested: one that was created since need not be in it.
        """
        records = {record.id: record for record in replicas}
        fresh = not self.listed or any(id not in self.replicas for id in records)
        self.listed = True
        for record in records.values():
            feed = self.following.feed(record.id)
            if feed is None or not feed.live:
                self.following.review(self._take(record))
        for deleted in [
            id
            for id in before
            if id in self.replicas and id not in records and id not in self.commands.deleting
        ]:
            self.remove(deleted)
        if fresh:
            self._read_names_soon()
            self.publish(ListChanged())

    def back_online(self) -> None:
        self.following.reconnect_now()
        self._follow_changes()
        self.want_flush()

    def connection_changed(self) -> None:
        self.publish(ConnectionChanged())

    # background work

    async def _review(self, state: ReplicaState) -> None:
        # In its own task: the feed that reported the status may be the one to end.
        if state.id in self.replicas:
            self.following.review(state)

    def _follow_changes(self) -> None:
        self.changes.reconnect_now()
        self._tasks.start("changes", self.changes.run())

    async def _read_environment(self, state: ReplicaState) -> None:
        try:
            detail = await self.client.replicas.get(state.id, include=("environment",))
        except ClientError as error:
            self.connection_lost(error)
            return
        state.record.environment = detail.environment
        state.environment_read = True
        self.publish(ReplicaChanged(state.id))

    async def _read_environment_names(self) -> None:
        try:
            environments = await self.client.environments.list(scope="all")
        except ClientError as error:
            self.connection_lost(error)
            return
        names = {environment.id: environment.name for environment in environments}
        if names != self.environment_names:
            self.environment_names = names
            self.publish(ListChanged())

    async def _read_queue(self, replica_id: UUID, chat_id: UUID) -> None:
        while chat_id in self._queues_wanted:
            self._queues_wanted.discard(chat_id)
            chat = self.chat(replica_id, chat_id)
            if chat is None:
                return
            try:
                chat.take_queue((await self.client.messages.queue(replica_id, chat_id)).queue)
            except ClientError as error:
                self.connection_lost(error)
                return
            self.publish(ChatChange(replica_id, chat_id))

    def _seen_at(self, record: Replica) -> datetime | None:
        seen = self._seen.get(record.id)
        used = record.last_activity_at is not None and record.last_activity_at > record.created_at
        # One that was never looked at may have worked while no cockpit was open.
        return self._since if seen is None and used else seen

    def _take(self, record: Replica) -> ReplicaState:
        state = self.replicas.get(record.id)
        if state is None:
            state = ReplicaState.from_summary(record, self._seen_at(record))
            state.service, state.beside = self.connection.name, self._beside
            self.replicas[record.id] = state
        elif state.take_summary(record):
            self.publish(ReplicaChanged(record.id))
            self.publish(ListChanged())
        return state
