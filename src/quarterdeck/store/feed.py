"""One replica's event stream, folded into its state.

    record read at log index N -> stream after N -> fold -> change published

The stream goes on exactly where the record ended, so nothing falls between the two. A server that
has no indexes is read again after each reconnect instead.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from quarterdeck.client.items import Lost, Malformed, Received, Restored
from quarterdeck.store.changes import (
    Change,
    ChatChanged,
    ListChanged,
    Noticed,
    ReplicaChanged,
    TranscriptChanged,
)
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import RUNNING, ReplicaState
from quarterdeck.wire.events import (
    ChatChanged as ChatPayload,
)
from quarterdeck.wire.events import (
    ChatDeleted,
    ChatInterrupted,
    EngineStatusChanged,
    ErrorEvent,
    Event,
    EventType,
    HooksChanged,
    Payload,
    PreviewChanged,
    ReposChanged,
    TurnAccepted,
    TurnCompleted,
    TurnDelta,
    TurnStarted,
    payload_of,
)

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

SHARE_SECONDS = 0.003
"""What has come already is folded for so long at a time: then keys and frames have their turn."""

log = logging.getLogger(__name__)

PAGE = 400
"""Events of history that are read at a time."""


class FeedOwner(Protocol):
    """What a feed tells about."""

    def publish(self, change: Change) -> None: ...

    def line_lost(self, error: Exception) -> None: ...

    def looks_at(self, replica_id: UUID) -> bool:
        """Whether the replica is on the screen."""
        ...

    def sees(self, replica_id: UUID) -> bool:
        """Whether it is before the person's eyes, so that what ends there is seen."""
        ...

    def seen(self, state: ReplicaState) -> None: ...

    def status_changed(self, state: ReplicaState) -> None: ...

    def want_queue(self, replica_id: UUID, chat_id: UUID) -> None: ...


class ReplicaFeed:
    """Follows one replica until canceled, or until it is gone (`NotFound` is raised)."""

    def __init__(self, client: "Client", state: ReplicaState, owner: FeedOwner) -> None:
        self._client = client
        self._state = state
        self._owner = owner
        self._reconnect: Callable[[], None] | None = None
        self.live = False
        """Whether the record was read, and so each change since is known."""

    async def run(self) -> None:
        """Reads the record, then the stream, for ever.

        Raises:
            ClientError: the service refuses for good: the replica is gone, or the key is bad.
        """
        await self.refetch()
        stream = self._client.events.stream(self._state.id, after=self._state.record.log_index)
        self._reconnect = stream.reconnect_now
        async with stream:
            begun = monotonic()
            async for item in stream:
                if monotonic() - begun > SHARE_SECONDS:
                    await asyncio.sleep(0)
                    begun = monotonic()
                match item:
                    case Received(index, event):
                        self.fold(index, event)
                    case Lost(error, _):
                        self._owner.line_lost(error)
                    case Restored(resumed):
                        if not resumed:
                            await self._catch_up()
                    case Malformed(error):
                        log.warning("an event of %s could not be read: %s", self._state.id, error)

    def reconnect_now(self) -> None:
        """Does not wait for the next try."""
        if self._reconnect is not None:
            self._reconnect()

    async def refetch(self) -> None:
        """Reads the replica's record."""
        detail = await self._client.replicas.get(self._state.id)
        self._state.take_detail(detail)
        self.live = True
        self._publish(ReplicaChanged(self._state.id))
        self._publish(ListChanged())

    async def load(self, chat: ChatState) -> None:
        """Reads the newest page of a chat's history and its queue.

        Raises:
            ClientError: the page could not be read; what was there stays.
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
        self._publish(ChatChanged(self._state.id, chat.id))

    async def _catch_up(self) -> None:
        await self.refetch()
        for chat in list(self._state.chats.values()):
            if chat.transcript is not None:
                await self.load(chat)

    def fold(self, index: int | None, event: Event) -> None:
        """Applies one event to the state."""
        state = self._state
        match payload_of(event):
            case EngineStatusChanged() as payload:
                self._take_status(payload)
            case ReposChanged(repos=repos):
                state.take_repositories(repos)
                self._publish(ReplicaChanged(state.id))
            case ChatPayload(chat=record):
                known = state.take_chat(record.as_chat())
                self._publish(ChatChanged(state.id, known.id))
                self._publish(ListChanged())
            case ChatDeleted(chat_id=chat_id):
                if (gone := self._chat(chat_id)) is not None:
                    del state.chats[gone.id]
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
                self._publish(Noticed("error", state.name, message, state.id))
            case _:
                pass

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
        tokens = chat.tokens
        fold = chat.add_delta(index, delta)
        if chat.tokens != tokens:
            self._publish(ChatChanged(self._state.id, chat.id))
        if fold is not None:
            self._publish(TranscriptChanged(self._state.id, chat.id, fold))

    def _take_start(self, event: Event, started: TurnStarted) -> None:
        chat = self._chat(started.chat_id)
        if chat is None:
            return
        chat.start_turn(started.message_id, event.ts)
        self._publish(ChatChanged(self._state.id, chat.id))
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
        self._publish(ChatChanged(state.id, chat.id))
        self._publish(ListChanged())

    def _publish(self, change: Change) -> None:
        self._owner.publish(change)
