"""Whether the service is up."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.health import Health


class HealthCheck:
    """`/v1/health`; needs no key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, *, timeout: float | None = None) -> Health:
        """The service's state and version."""
        return await self._connection.call("GET", "/v1/health", Health, timeout=timeout)
