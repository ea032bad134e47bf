"""One command in a replica's workspace root."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.exec import DEFAULT_TIMEOUT_SECONDS, ExecRequest, ExecResponse

GRACE_SECONDS = 15.0
"""The answer may come so much later than the command's own time-out."""


class Exec:
    """`/v1/replica/{id}/exec`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def run(
        self, replica_id: UUID, command: str, timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    ) -> ExecResponse:
        """Runs a shell command; the replica must be active (`NotActive`). 1 to 50 seconds."""
        return await self._connection.call(
            "POST",
            f"/v1/replica/{replica_id}/exec",
            ExecResponse,
            body=ExecRequest(command=command, timeout_seconds=timeout_seconds),
            timeout=timeout_seconds + GRACE_SECONDS,
        )
