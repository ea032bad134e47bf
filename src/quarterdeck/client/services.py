"""The services that share one database."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.services import Service, ServiceList


class Services:
    """`/v1/services`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[Service]:
        """All of them, the one that answers among them."""
        return (await self._connection.call("GET", "/v1/services", ServiceList)).services
