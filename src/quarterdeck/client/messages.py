"""Messages to an agent, and those that wait for the running turn."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.messages import MessageAccepted, Queue, SendMessage


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
