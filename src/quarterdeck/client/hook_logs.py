"""Logs of a replica's hooks."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.setup import HookLogs as Logs


class HookLogs:
    """`/v1/replica/{id}/hooks`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, replica_id: UUID) -> Logs:
        """Every run of its warm and start hooks, oldest first. Never wakes it."""
        return await self._connection.call("GET", f"/v1/replica/{replica_id}/hooks", Logs)
