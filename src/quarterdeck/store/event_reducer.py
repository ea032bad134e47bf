"""Apply the events of replicas to their state.

    record read at log index N -> stream after N -> fold -> change published

The stream continues where the record ended, so no change is missed. With a server that has no indexes
the record is read again after each reconnect instead.

Only active and preparing replicas have a stream, and the one on the screen: others change only by
commands, and the list shows that.
"""

import logging
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import ClientError, ForbiddenError, NotFoundError, UnauthorizedError
from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Malformed, Received
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import RUNNING, ReplicaState
from quarterdeck.store.signals import (
    Change,
    ChatChange,
    KeyedTasks,
    ListChanged,
    Noticed,
    ReplicaChanged,
    TranscriptChanged,
)
from quarterdeck.wire.events import (
    ChatChanged,
    ChatDeleted,
    ChatInterrupted,
    EngineStatusChanged,
    ErrorEvent,
    Event,
    EventType,
    HooksChanged,
    Payload,
    PreviewChanged,
    TurnAccepted,
    TurnCompleted,
    TurnDelta,
    TurnStarted,
    payload_of,
)
from quarterdeck.wire.git_state import ReposChanged

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState


NOTICES, NOTICE_SECONDS = 5, 10.0
"""How many errors of a replica are shown at most, and within how many seconds."""

log = logging.getLogger(__name__)

PAGE = 400
"""Events of history that are read at a time."""


class ReplicaFeed:
    """Follows one replica until canceled, or until it is deleted (`NotFoundError` is raised)."""

    def __init__(self, owner: "AppState", state: ReplicaState) -> None:
        self._client = owner.client
        self._state = state
        self._owner = owner
        self._reconnect: Callable[[], None] | None = None
        self._noticed: deque[float] = deque(maxlen=NOTICES)
        self.live = False
        """Whether the record was read, so that every change since is known."""

    async def run(self) -> None:
        """Read the record, then the stream, until canceled.

        Raises:
            ClientError: the service refuses: the replica was deleted, or the key is invalid.
        """
        await self.refetch()
        stream = self._client.events.stream(self._state.id, after=self._state.record.log_index)
        self._reconnect = stream.reconnect_now
        async with stream:
            async for item in stream:
                match item:
                    case Received(index, event):
                        self.fold(index, event)
                    case ConnectionLost(error, _):
                        self._owner.connection_lost(error)
                    case ConnectionRestored(resumed):
                        if not resumed:
                            await self._catch_up()
                    case Malformed(error):
                        log.warning("an event of %s could not be read: %s", self._state.id, error)

    def reconnect_now(self) -> None:
        """Do not wait for the next try."""
        if self._reconnect is not None:
            self._reconnect()

    async def refetch(self) -> None:
        """Read the replica's record."""
        detail = await self._client.replicas.get(self._state.id)
        self._state.take_detail(detail)
        self.live = True
        self._publish(ReplicaChanged(self._state.id))
        self._publish(ListChanged())

    async def load(self, chat: ChatState) -> None:
        """Read the newest page of a chat's history and its queue.

        Raises:
            ClientError: the page could not be read; the transcript stays as it was.
        """
        chat.begin_loading()
        try:
            page = await self._client.history.page(self._state.id, chat_id=chat.id, limit=PAGE)
        except BaseException:
            chat.abandon_loading()
            raise
        chat.finish_loading(page)
        queue = await self._client.messages.queue(self._state.id, chat.id)
        chat.take_queue(queue.queue)
        self._publish(TranscriptChanged(self._state.id, chat.id, None))
        self._publish(ChatChange(self._state.id, chat.id))

    async def _catch_up(self) -> None:
        await self.refetch()
        for chat in list(self._state.chats.values()):
            if chat.transcript is not None:
                await self.load(chat)

    def fold(self, index: int | None, event: Event) -> None:
        """Apply one event to the state."""
        state = self._state
        match payload_of(event):
            case EngineStatusChanged() as payload:
                self._take_status(payload)
            case ReposChanged(repos=repos):
                state.take_repositories(repos)
                self._publish(ReplicaChanged(state.id))
                self._publish(ListChanged())
            case ChatChanged(chat=record):
                known = state.take_chat(record.as_chat())
                self._publish(ChatChange(state.id, known.id))
                self._publish(ListChanged())
            case ChatDeleted(chat_id=chat_id):
                if (deleted := self._chat(chat_id)) is not None:
                    del state.chats[deleted.id]
                self._publish(ReplicaChanged(state.id))
            case TurnDelta() as delta:
                self._take_delta(index, delta)
            case TurnAccepted(chat_id=chat_id, queued=True) | ChatInterrupted(chat_id=chat_id):
                if (chat := self._chat(chat_id)) is not None:
                    self._owner.want_queue(state.id, chat.id)
            case TurnStarted() as started:
                self._take_start(event, started)
            case TurnCompleted() as completed:
                self._take_end(event, completed)
            case payload:
                self._fold_setup(event, payload)

    def _fold_setup(self, event: Event, payload: Payload | None) -> None:
        state = self._state
        match payload:
            case HooksChanged():
                state.hooks.take(event.type, payload, event.ts)
                self._publish(ReplicaChanged(state.id))
            case PreviewChanged(previews=previews):
                state.previews = previews
                self._publish(ReplicaChanged(state.id))
            case ErrorEvent(message=message) if event.type == EventType.ERROR:
                self._notice(message)
            case _:
                pass

    def _notice(self, text: str) -> None:
        """Show an error, unless there were many: each is a notice that is drawn before the next key is processed."""
        now, before = monotonic(), self._noticed
        if len(before) == NOTICES and now - before[0] < NOTICE_SECONDS:
            return
        before.append(now)
        if len(before) == NOTICES and now - before[0] < NOTICE_SECONDS:
            text += f" More errors are left out for up to {NOTICE_SECONDS:.0f} s."
        self._publish(Noticed("error", self._state.name, text, self._state.id))

    def _chat(self, chat_id: str) -> ChatState | None:
        return next((c for c in self._state.chats.values() if str(c.id) == chat_id), None)

    def _take_status(self, payload: EngineStatusChanged) -> None:
        if payload.workspace_status is None:
            return
        self._state.record.status = payload.workspace_status
        self._state.record.error = payload.error
        if payload.workspace_status not in RUNNING:
            self._state.rest()
        self._owner.status_changed(self._state)
        self._publish(ReplicaChanged(self._state.id))
        self._publish(ListChanged())

    def _take_delta(self, index: int | None, delta: TurnDelta) -> None:
        chat = self._chat(delta.chat_id)
        if chat is None:
            return
        tokens, state = chat.tokens, chat.noted_state
        fold = chat.add_delta(index, delta)
        if chat.tokens != tokens or chat.noted_state != state:
            self._publish(ChatChange(self._state.id, chat.id))
        if fold is not None:
            self._publish(TranscriptChanged(self._state.id, chat.id, fold))

    def _take_start(self, event: Event, started: TurnStarted) -> None:
        chat = self._chat(started.chat_id)
        if chat is None:
            return
        chat.start_turn(started.message_id, event.ts)
        self._publish(ChatChange(self._state.id, chat.id))
        self._publish(ListChanged())

    def _take_end(self, event: Event, completed: TurnCompleted) -> None:
        state = self._state
        chat = self._chat(completed.chat_id)
        if chat is None:
            return
        chat.end_turn(completed.processing, completed.plan_ready)
        state.done_at = event.ts
        state.record.last_activity_at = event.ts
        if self._owner.sees(state.id):
            self._owner.seen(state)
        self._publish(ChatChange(state.id, chat.id))
        self._publish(ListChanged())

    def _publish(self, change: Change) -> None:
        self._owner.publish(change)


class Subscriptions:
    """The feeds of an installation's replicas, at most one each."""

    def __init__(self, owner: "AppState", tasks: KeyedTasks) -> None:
        self._tasks = tasks
        self._owner = owner
        self._feeds: dict[UUID, ReplicaFeed] = {}

    def feed(self, replica_id: UUID) -> ReplicaFeed | None:
        """Return the feed of a replica, if it is followed."""
        return self._feeds.get(replica_id)

    def review(self, state: ReplicaState) -> None:
        """Follow a replica that needs it, and stop following one that does not."""
        if state.status in RUNNING or self._owner.looks_at(state.id):
            self.follow(state)
        else:
            self.leave(state.id)

    def follow(self, state: ReplicaState) -> None:
        """Follow a replica, whatever its state."""
        if state.id in self._feeds:
            return
        feed = ReplicaFeed(self._owner, state)
        self._feeds[state.id] = feed
        self._tasks.start(("feed", state.id), self._run(state.id, feed))

    def leave(self, replica_id: UUID) -> None:
        """Stop following a replica."""
        if self._feeds.pop(replica_id, None) is not None:
            self._tasks.stop(("feed", replica_id))

    def reconnect_now(self) -> None:
        """Make every feed try again at once."""
        for feed in self._feeds.values():
            feed.reconnect_now()

    async def _run(self, replica_id: UUID, feed: ReplicaFeed) -> None:
        try:
            await feed.run()
        except NotFoundError:
            self._owner.remove(replica_id)
        except (UnauthorizedError, ForbiddenError) as error:
            self._owner.refused(error)
        except ClientError as error:
            self._owner.connection_lost(error)
        finally:
            if self._feeds.get(replica_id) is feed:
                del self._feeds[replica_id]
