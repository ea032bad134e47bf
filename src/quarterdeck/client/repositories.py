"""Repositories that environments can put into a workspace."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.repositories import (
    ConnectRepository,
    Repository,
    RepositoryAnswer,
    RepositoryList,
)

PATH = "/v1/replica/repositories"
MIRROR_SECONDS = 600.0
"""Connecting mirrors the whole repository before it is answered."""


class Repositories:
    """`/v1/replica/repositories`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[Repository]:
        """Every connected repository."""
        return (await self._connection.call("GET", PATH, RepositoryList)).repositories

    async def connect(self, repository: ConnectRepository) -> Repository:
        """Connects a git URL or a local path.

        Raises:
            InvalidRequest: it is no repository.
        """
        answer = await self._connection.call(
            "POST", PATH, RepositoryAnswer, body=repository, timeout=MIRROR_SECONDS
        )
        return answer.repository
