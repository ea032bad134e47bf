"""Chats of a replica."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.base import Success
from quarterdeck.wire.chats import (
    Chat,
    ChatAnswer,
    ChatList,
    CreateChat,
    Interrupted,
    RenameChat,
    RespondBody,
    SlashCommand,
    SlashCommands,
)
from quarterdeck.wire.goals import ChatGoal, GoalAnswer, UpdateGoal

list_ = list  # the class below has a method of this name


class Chats:
    """`/v1/replica/{id}/chats`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[Chat]:
        """Every chat; works in every state of the replica."""
        return (await self._connection.call("GET", _path(replica_id), ChatList)).chats

    async def create(self, replica_id: UUID, chat: CreateChat) -> Chat:
        """Makes a chat for one agent."""
        return (await self._connection.call("POST", _path(replica_id), ChatAnswer, body=chat)).chat

    async def rename(self, replica_id: UUID, chat_id: UUID, display_name: str) -> Chat:
        """Gives a chat its title (1 to 100 characters). Raises `NotActive`."""
        body = RenameChat(display_name=display_name)
        answer = await self._connection.call(
            "PATCH", f"{_path(replica_id)}/{chat_id}", ChatAnswer, body=body
        )
        return answer.chat

    async def interrupt(self, replica_id: UUID, chat_id: UUID) -> Interrupted:
        """Stops the running turn; what is queued stays. Raises `NotActive`."""
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
    ) -> None:
        """Answers a question of the agent with an option or a text.

        Raises:
            Conflict: it is no longer awaited, or the replica is not active.
        """
        body = RespondBody(request_id=request_id, option_id=option_id, text=text)
        await self._connection.call(
            "POST", f"{_path(replica_id)}/{chat_id}/respond", Success, body=body
        )

    async def delete(self, replica_id: UUID, chat_id: UUID) -> None:
        """Takes a chat away, whatever it is doing; works in every state of the replica."""
        await self._connection.call("DELETE", f"{_path(replica_id)}/{chat_id}", Success)

    async def slash_commands(self, replica_id: UUID, chat_id: UUID) -> list_[SlashCommand]:
        """The words that a message may begin with."""
        answer = await self._connection.call(
            "GET", f"{_path(replica_id)}/{chat_id}/slash-commands", SlashCommands
        )
        return answer.commands

    async def update_goal(
        self, replica_id: UUID, chat_id: UUID, change: UpdateGoal
    ) -> ChatGoal | None:
        """Sets, pauses or resumes the goal; None on chats whose agent has no goals.

        Raises:
            Conflict: there is no goal to change, or the replica is not active.
        """
        answer = await self._connection.call(
            "PATCH", f"{_path(replica_id)}/{chat_id}/goal", GoalAnswer, body=change
        )
        return answer.goal


def _path(replica_id: UUID) -> str:
    return f"/v1/replica/{replica_id}/chats"
