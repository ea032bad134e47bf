"""Messages to an agent, and those that wait for the running turn."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.messages import (
    MessageAccepted,
    Queue,
    QueueAnswer,
    QueuedMessage,
    ReorderQueue,
    SendMessage,
)


class Messages:
    """`/v1/replica/{id}/messages` and the queue of a chat."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, replica_id: UUID, message: SendMessage) -> MessageAccepted:
        """Sends a message; once answered it is never lost. Wakes a sleeping replica.

        A `LinkError` leaves open whether it was accepted, so this is never tried again by itself.

        Raises:
            InErrorState: the replica failed and must be woken first.
        """
        return await self._connection.call(
            "POST", f"/v1/replica/{replica_id}/messages", MessageAccepted, body=message
        )

    async def queue(self, replica_id: UUID, chat_id: UUID) -> Queue:
        """What waits, first to run first; works in every state of the replica."""
        return await self._connection.call(
            "GET", f"/v1/replica/{replica_id}/chats/{chat_id}/queue", Queue
        )

    async def clear_queue(self, replica_id: UUID, chat_id: UUID) -> list[QueuedMessage]:
        """Cancels everything that waits; returns what waits then."""
        return await self._change("DELETE", replica_id, chat_id)

    async def remove_queued(
        self, replica_id: UUID, chat_id: UUID, message_id: UUID
    ) -> list[QueuedMessage]:
        """Cancels one message. Returns what waits then.

        Raises:
            Conflict: it has started.
        """
        return await self._change("DELETE", replica_id, chat_id, f"/{message_id}")

    async def reorder_queue(
        self, replica_id: UUID, chat_id: UUID, message_id: UUID, position: int
    ) -> list[QueuedMessage]:
        """Gives a message another place, from 1. Returns what waits then.

        Raises:
            Conflict: it has started.
        """
        body = ReorderQueue(message_id=message_id, position=position)
        return await self._change("PATCH", replica_id, chat_id, "/reorder", body)

    async def _change(
        self,
        method: str,
        replica_id: UUID,
        chat_id: UUID,
        rest: str = "",
        body: ReorderQueue | None = None,
    ) -> list[QueuedMessage]:
        path = f"/v1/replica/{replica_id}/chats/{chat_id}/queue{rest}"
        return (await self._connection.call(method, path, QueueAnswer, body=body)).queue
