"""What a person has done to the chats of a replica. Every command raises the client's errors."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from uuid import UUID

from quarterdeck.client.errors import Conflict, NotFound
from quarterdeck.store.changes import Change, ChatChanged, ListChanged, ReplicaChanged
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.wire.chats import CreateChat, SlashCommand
from quarterdeck.wire.files import FoundFile
from quarterdeck.wire.goals import UpdateGoal
from quarterdeck.wire.messages import QueuedMessage

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.wire.agents import Agent, AgentModels
    from quarterdeck.wire.canvas import CanvasUpload

MOST_FILES = 50
"""Files that a search for a mention asks for."""


class ChatCommandsOwner(Protocol):
    """What these commands need of the deck."""

    replicas: dict[UUID, ReplicaState]

    @property
    def client(self) -> "Client": ...

    def chat(self, replica_id: UUID, chat_id: UUID) -> ChatState | None: ...

    def publish(self, change: Change) -> None: ...


class ChatCommands:
    """Commands of one deck.

    Raises:
        ClientError: from every method, when the service refuses or cannot be reached.
    """

    def __init__(self, owner: ChatCommandsOwner) -> None:
        self._owner = owner

    # chats

    async def create(self, replica_id: UUID, provider: str, model: str | None = None) -> UUID:
        """Makes a chat for an agent; the model is what its messages will ask for."""
        record = await self._owner.client.chats.create(replica_id, CreateChat(provider=provider))
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.take_chat(record).model = model
            self._told(replica_id)
        return record.id

    async def rename(self, replica_id: UUID, chat_id: UUID, name: str) -> None:
        """Gives a chat its title. Raises `NotActive` too."""
        record = await self._owner.client.chats.rename(replica_id, chat_id, name)
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.take_chat(record)
            self._told(replica_id)

    async def delete(self, replica_id: UUID, chat_id: UUID) -> None:
        """Takes a chat away with its history; one that is gone already is no error."""
        with contextlib.suppress(NotFound):
            await self._owner.client.chats.delete(replica_id, chat_id)
        state = self._owner.replicas.get(replica_id)
        if state is not None:
            state.chats.pop(chat_id, None)
            self._told(replica_id)

    # goal

    async def set_goal(
        self, replica_id: UUID, chat_id: UUID, objective: str | None, budget: int | None
    ) -> bool:
        """Sets a goal, or only its budget; False when the chat's agent has no goals."""
        change = UpdateGoal(objective=objective, token_budget=budget)
        return await self._change_goal(replica_id, chat_id, change)

    async def switch_goal(
        self, replica_id: UUID, chat_id: UUID, status: Literal["active", "paused"]
    ) -> bool:
        """Pauses the goal or goes on with it; False when the chat's agent has no goals."""
        return await self._change_goal(replica_id, chat_id, UpdateGoal(status=status))

    async def _change_goal(self, replica_id: UUID, chat_id: UUID, change: UpdateGoal) -> bool:
        goal = await self._owner.client.chats.update_goal(replica_id, chat_id, change)
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None and goal is not None:
            chat.record.goal = goal
            self._owner.publish(ChatChanged(replica_id, chat_id))
        return goal is not None

    # what waits behind the running turn

    async def dequeue(self, replica_id: UUID, chat_id: UUID, message: QueuedMessage) -> bool:
        """Takes a message out of the queue; False when it has started meanwhile."""
        messages = self._owner.client.messages
        try:
            left = await messages.remove_queued(replica_id, chat_id, message.id)
        except (Conflict, NotFound):
            return False
        self._take_queue(replica_id, chat_id, left)
        return True

    async def move_queued(
        self, replica_id: UUID, chat_id: UUID, message: QueuedMessage, by: int
    ) -> bool:
        """Moves a message in the queue; False when it has no such place, or has started."""
        chat = self._owner.chat(replica_id, chat_id)
        order = [entry.id for entry in chat.queue] if chat else []
        place = order.index(message.id) + by if message.id in order else -1
        if not 0 <= place < len(order):
            return False
        messages = self._owner.client.messages
        try:
            left = await messages.reorder_queue(replica_id, chat_id, message.id, place + 1)
        except (Conflict, NotFound):
            return False
        self._take_queue(replica_id, chat_id, left)
        return True

    def _take_queue(self, replica_id: UUID, chat_id: UUID, queue: list[QueuedMessage]) -> None:
        chat = self._owner.chat(replica_id, chat_id)
        if chat is not None:
            chat.take_queue(queue)
            self._owner.publish(ChatChanged(replica_id, chat_id))

    # what can be named in a message

    async def slash_commands(self, replica_id: UUID, chat_id: UUID) -> list[SlashCommand]:
        """The words that a message may begin with."""
        return await self._owner.client.chats.slash_commands(replica_id, chat_id)

    async def find_files(self, replica_id: UUID, query: str) -> list[FoundFile]:
        """Files of the repositories, best match first."""
        found = await self._owner.client.files.search(replica_id, query, limit=MOST_FILES)
        return found.files

    async def upload(self, replica_id: UUID, path: Path, content: bytes) -> "CanvasUpload":
        """Puts a file on the canvas; one for a replica at rest waits for it to start."""
        return await self._owner.client.canvas.upload(replica_id, path.name, content)

    async def agents(self) -> "list[Agent]":
        """The agents that the service knows, usable ones first."""
        agents = await self._owner.client.agents.list()
        return sorted(agents, key=lambda agent: not agent.available)

    async def models(self, agent: str) -> "AgentModels":
        """The models that an agent is known to offer."""
        return await self._owner.client.agents.models(agent)

    def _told(self, replica_id: UUID) -> None:
        self._owner.publish(ReplicaChanged(replica_id))
        self._owner.publish(ListChanged())
