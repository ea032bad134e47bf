"""Chats, their messages and their history."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast
from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.names import NEUTRAL
from quarterdeck.client.paging import MOST_PAGES, endless
from quarterdeck.wire.base import Success
from quarterdeck.wire.chats import (
    Chat,
    ChatAnswer,
    ChatGoal,
    ChatList,
    ChatSettings,
    CreateChat,
    GoalAnswer,
    Interrupted,
    JoinQueue,
    MessageAccepted,
    Queue,
    QueueAnswer,
    QueuedMessage,
    RenameChat,
    ReorderQueue,
    RespondBody,
    SendMessage,
    SlashCommand,
    SlashCommands,
    SteerAnswer,
    UpdateGoal,
    UpdateSettings,
)
from quarterdeck.wire.history import History
from quarterdeck.wire.search import SearchHits

list_ = list  # the class below has a method of this name


class ChatsApi:
    """`/v1/replica/{id}/chats`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[Chat]:
        """Return every chat; works in every state of the replica."""
        return (await self._connection.call("GET", _path(replica_id), ChatList)).chats

    async def create(self, replica_id: UUID, chat: CreateChat) -> Chat:
        """Create a chat for one agent."""
        return (await self._connection.call("POST", _path(replica_id), ChatAnswer, body=chat)).chat

    async def rename(self, replica_id: UUID, chat_id: UUID, display_name: str) -> Chat:
        """Give a chat its title (1 to 100 characters). Raises `NotActiveError`."""
        body = RenameChat(display_name=display_name)
        answer = await self._connection.call(
            "PATCH", f"{_path(replica_id)}/{chat_id}", ChatAnswer, body=body
        )
        return answer.chat

    async def interrupt(self, replica_id: UUID, chat_id: UUID) -> Interrupted:
        """Stop the running turn; queued messages stay. Raises `NotActiveError`."""
        return await self._connection.call(
            "POST", f"{_path(replica_id)}/{chat_id}/interrupt", Interrupted
        )

    async def respond(
        self,
        replica_id: UUID,
        chat_id: UUID,
        request_id: str,
        *,
        option_id: str | None = None,
        text: str | None = None,
        message: str | None = None,
    ) -> None:
        """Answer a question of the agent with an option or a text.

        A `message` for the agent comes before those that wait.

        Raises:
            ConflictError: the question is closed, or the replica is not active.
        """
        body = RespondBody(request_id=request_id, option_id=option_id, text=text, message=message)
        await self._connection.call(
            "POST", f"{_path(replica_id)}/{chat_id}/respond", Success, body=body
        )

    async def delete(self, replica_id: UUID, chat_id: UUID) -> None:
        """Delete a chat, even while a turn runs; works in every state of the replica."""
        await self._connection.call("DELETE", f"{_path(replica_id)}/{chat_id}", Success)

    async def slash_commands(self, replica_id: UUID, chat_id: UUID) -> list_[SlashCommand]:
        """Return the slash commands that a message may start with."""
        answer = await self._connection.call(
            "GET", f"{_path(replica_id)}/{chat_id}/slash-commands", SlashCommands
        )
        return answer.commands

    async def settings(self, replica_id: UUID, chat_id: UUID) -> ChatSettings:
        """Return the settings that the chat's agent offers; works in every state of the replica."""
        return await self._connection.call(
            "GET", f"{_path(replica_id)}/{chat_id}/settings", ChatSettings
        )

    async def update_settings(
        self, replica_id: UUID, chat_id: UUID, change: UpdateSettings
    ) -> Chat:
        """Change settings of the chat's agent.

        Raises:
            ConflictError: the replica is not active.
        """
        answer = await self._connection.call(
            "PATCH", f"{_path(replica_id)}/{chat_id}/settings", ChatAnswer, body=change
        )
        return answer.chat

    async def delete_goal(self, replica_id: UUID, chat_id: UUID) -> None:
        """Remove the goal of a chat, if it has one."""
        path = f"/v1/replica/{replica_id}/chats/{chat_id}/goal"
        await self._connection.call("DELETE", path, GoalAnswer)

    async def update_goal(
        self, replica_id: UUID, chat_id: UUID, change: UpdateGoal
    ) -> ChatGoal | None:
        """Set, pause or resume the goal; None on chats whose agent has no goals.

        Raises:
            ConflictError: there is no goal to change, or the replica is not active.
        """
        answer = await self._connection.call(
            "PATCH", f"{_path(replica_id)}/{chat_id}/goal", GoalAnswer, body=change
        )
        return answer.goal


def _path(replica_id: UUID) -> str:
    return f"/v1/replica/{replica_id}/chats"


class MessagesApi:
    """`/v1/replica/{id}/messages` and the queue of a chat."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def send(self, replica_id: UUID, message: SendMessage) -> MessageAccepted:
        """Send a message; once answered it is never lost. Wakes a sleeping replica.

        After a `LinkError` it is unknown whether it was accepted, so this is never retried automatically.

        Raises:
            ReplicaFailedError: the replica failed and must be woken first.
        """
        return await self._connection.call(
            "POST", f"/v1/replica/{replica_id}/messages", MessageAccepted, body=message
        )

    async def queue(self, replica_id: UUID, chat_id: UUID) -> Queue:
        """Return the queued messages, first to run first; works in every state of the replica."""
        return await self._connection.call(
            "GET", f"/v1/replica/{replica_id}/chats/{chat_id}/queue", Queue
        )

    async def clear_queue(self, replica_id: UUID, chat_id: UUID) -> list[QueuedMessage]:
        """Cancel all queued messages; return the queue after that."""
        return await self._change("DELETE", replica_id, chat_id)

    async def remove_queued(
        self, replica_id: UUID, chat_id: UUID, message_id: UUID
    ) -> list[QueuedMessage]:
        """Cancel one message; return the queue after that.

        Raises:
            ConflictError: it has started.
        """
        return await self._change("DELETE", replica_id, chat_id, f"/{message_id}")

    async def reorder_queue(
        self, replica_id: UUID, chat_id: UUID, message_id: UUID, position: int
    ) -> list[QueuedMessage]:
        """Move a message to another position, from 0; return the queue after that.

        Raises:
            ConflictError: it has started.
        """
        body = ReorderQueue(message_id=message_id, position=position)
        return await self._change("PATCH", replica_id, chat_id, "/reorder", body)

    async def steer(self, replica_id: UUID, chat_id: UUID, message_id: UUID) -> SteerAnswer:
        """Put a queued message into the running turn, or interrupt the turn to run it next.

        Raises:
            ConflictError: it has started, no turn runs, a question is open, or the turn cannot take
                it.
        """
        path = f"/v1/replica/{replica_id}/chats/{chat_id}/queue/{message_id}/steer"
        return await self._connection.call("POST", path, SteerAnswer)

    async def join(
        self, replica_id: UUID, chat_id: UUID, message_ids: list[UUID] | None = None
    ) -> list[QueuedMessage]:
        """Join queued messages to one, by default all; return the queue after that.

        Raises:
            ConflictError: one has started, or they cannot be joined.
        """
        body = JoinQueue(message_ids=message_ids)
        return await self._change("POST", replica_id, chat_id, "/join", body)

    async def _change(
        self,
        method: str,
        replica_id: UUID,
        chat_id: UUID,
        rest: str = "",
        body: ReorderQueue | JoinQueue | None = None,
    ) -> list[QueuedMessage]:
        path = f"/v1/replica/{replica_id}/chats/{chat_id}/queue{rest}"
        return (await self._connection.call(method, path, QueueAnswer, body=body)).queue


class HistoryApi:
    """`/v1/replica/{id}/history` and `/v1/search`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection
        self._rename = _renaming(connection.names.transcript_key)

    async def page(
        self,
        replica_id: UUID,
        *,
        chat_id: UUID | None = None,
        limit: int | None = None,
        before_event: int | None = None,
        before_turn: int | None = None,
        before_cursor: str | None = None,
    ) -> History:
        """Return the last `limit` events (all without one) before the given position, oldest first.

        `before_event` and `before_turn` are exclusive upper bounds; pass `events_start_index` and
        `turns_start_index` of the page before. `before_cursor` moves both.
        """
        query = {
            "chat_id": str(chat_id) if chat_id else None,
            "limit": limit,
            "beforeEvent": before_event,
            "beforeTurn": before_turn,
            "beforeCursor": before_cursor,
        }
        return await self._connection.call(
            "GET", f"/v1/replica/{replica_id}/history", History, query=query, rename=self._rename
        )

    async def search(
        self, q: str, *, limit: int | None = None, cursor: str | None = None
    ) -> SearchHits:
        """Return messages and tool calls of all replicas that have the words of `q`, newest first.

        `cursor` is `next_cursor` of the page before.

        Raises:
            InvalidRequestError: `q` has no word.
        """
        query = {"q": q, "limit": limit, "cursor": cursor}
        return await self._connection.call("GET", "/v1/search", SearchHits, query=query)

    async def pages(
        self, replica_id: UUID, *, chat_id: UUID | None = None, limit: int = 200
    ) -> AsyncGenerator[History]:
        """Yield page after page from the newest back to the first.

        Raises:
            ProtocolError: there are too many pages.
        """
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self.page(replica_id, chat_id=chat_id, limit=limit, before_cursor=cursor)
            yield page
            if page.before_cursor is None or page.before_cursor == cursor:
                return
            cursor = page.before_cursor
        raise endless()


def _renaming(transcript_key: str) -> Callable[[bytes], bytes] | None:
    if transcript_key == NEUTRAL.transcript_key:
        return None

    def rename(body: bytes) -> bytes:
        try:
            answer: Any = json.loads(body)
        except ValueError:
            return body  # the reader reports it
        if not isinstance(answer, dict):
            return body
        fields = cast(dict[str, Any], answer)
        if transcript_key in fields:
            fields[NEUTRAL.transcript_key] = fields.pop(transcript_key)
        return json.dumps(fields).encode()

    return rename
