"""Commands on the chats of a replica. Every command raises the client's errors."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from quarterdeck.client.errors import ConflictError, NotFoundError
from quarterdeck.store.changes import ChatChange, ListChanged, ReplicaChanged
from quarterdeck.wire.chats import CreateChat, QueuedMessage, SlashCommand, UpdateGoal
from quarterdeck.wire.files import FoundFile

if TYPE_CHECKING:
    from quarterdeck.store.app_state import AppState
    from quarterdeck.wire.agents import Agent, AgentModels
    from quarterdeck.wire.canvas import CanvasUpload

MOST_FILES = 50
"""Files requested by a search for a mention."""


class ChatCommands:
    """Commands on the chats of one service.

    Raises:
        ClientError: from every method, when the service refuses or cannot be reached.
    """

    def __init__(self, owner: "AppState") -> None:
        self._owner = owner

    # chats

    async def create(self, replica_id: UUID, provider: str, model: str | None = None) -> UUID:
        """Create a chat for an agent; `model` is for its messages."""
        record = await self._owner.client.chats.create(replica_id, CreateChat(provider=provider))
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.take_chat(record).model = model
            self._publish_change(replica_id)
        return record.id

    async def rename(self, replica_id: UUID, chat_id: UUID, name: str) -> None:
        """Give a chat its title. Raises `NotActiveError` too."""
        record = await self._owner.client.chats.rename(replica_id, chat_id, name)
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.take_chat(record)
            self._publish_change(replica_id)

    async def delete(self, replica_id: UUID, chat_id: UUID) -> None:
        """Delete a chat with its history; not an error when it was already deleted."""
        with contextlib.suppress(NotFoundError):
            await self._owner.client.chats.delete(replica_id, chat_id)
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.chats.pop(chat_id, None)
            self._publish_change(replica_id)

    # goal

    async def set_goal(
        self, replica_id: UUID, chat_id: UUID, objective: str | None, budget: int | None
    ) -> bool:
        """Set a goal, or only its budget; False when the chat's agent has no goals."""
        change = UpdateGoal(objective=objective, token_budget=budget)
        return await self._change_goal(replica_id, chat_id, change)

    async def switch_goal(
        self, replica_id: UUID, chat_id: UUID, status: Literal["active", "paused"]
    ) -> bool:
        """Pause or resume the goal; False when the chat's agent has no goals."""
        return await self._change_goal(replica_id, chat_id, UpdateGoal(status=status))

    async def _change_goal(self, replica_id: UUID, chat_id: UUID, change: UpdateGoal) -> bool:
        goal = await self._owner.client.chats.update_goal(replica_id, chat_id, change)
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None and goal is not None:
            chat.record.goal = goal
            self._owner.publish(ChatChange(replica_id, chat_id))
        return goal is not None

    # queue

    async def dequeue(self, replica_id: UUID, chat_id: UUID, message: QueuedMessage) -> bool:
        """Remove a message from the queue; False when it has started meanwhile."""
        messages = self._owner.client.messages
        try:
            queue = await messages.remove_queued(replica_id, chat_id, message.id)
        except (ConflictError, NotFoundError):
            return False
        self._take_queue(replica_id, chat_id, queue)
        return True

    async def move_queued(
        self, replica_id: UUID, chat_id: UUID, message: QueuedMessage, by: int
    ) -> bool:
        """Move a message in the queue; False when there is no such place, or it has started."""
        chat = self._owner.chat(replica_id, chat_id)
        order = [entry.id for entry in chat.queue] if chat else []
        place = order.index(message.id) + by if message.id in order else -1
        if not 0 <= place < len(order):
            return False
        messages = self._owner.client.messages
        try:
            queue = await messages.reorder_queue(replica_id, chat_id, message.id, place)
        except (ConflictError, NotFoundError):
            return False
        self._take_queue(replica_id, chat_id, queue)
        return True

    def _take_queue(self, replica_id: UUID, chat_id: UUID, queue: list[QueuedMessage]) -> None:
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None:
            chat.take_queue(queue)
            self._owner.publish(ChatChange(replica_id, chat_id))

    # content of messages

    async def slash_commands(self, replica_id: UUID, chat_id: UUID) -> list[SlashCommand]:
        """Return the slash commands that a message may start with."""
        return await self._owner.client.chats.slash_commands(replica_id, chat_id)

    async def find_files(self, replica_id: UUID, query: str) -> list[FoundFile]:
        """Return the files of the repositories, best match first."""
        page = await self._owner.client.files.search(replica_id, query, limit=MOST_FILES)
        return page.files

    async def upload(self, replica_id: UUID, path: Path, content: bytes) -> "CanvasUpload":
        """Upload a file to the canvas; for a replica that is not active it waits for the start."""
        return await self._owner.client.canvas.upload(replica_id, path.name, content)

    async def agents(self) -> "list[Agent]":
        """Return the agents that the service knows, usable ones first."""
        agents = await self._owner.client.agents.list()
        return sorted(agents, key=lambda agent: not agent.available)

    async def models(self, agent: str) -> "AgentModels":
        """Return the known models of an agent."""
        return await self._owner.client.agents.models(agent)

    def _publish_change(self, replica_id: UUID) -> None:
        self._owner.publish(ReplicaChanged(replica_id))
        self._owner.publish(ListChanged())
