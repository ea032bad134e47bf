"""Repositories that environments can put into a workspace."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.base import Success
from quarterdeck.wire.repositories import (
    ConnectRepository,
    CreateRepositorySet,
    Repository,
    RepositoryAnswer,
    RepositoryList,
    RepositorySet,
    RepositorySetAnswer,
    RepositorySetList,
)

PATH = "/v1/replica/repositories"
SETS = "/v1/replica/repository-sets"
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

    async def disconnect(self, repository_id: UUID) -> None:
        """Disconnects one. Raises `Conflict` while an environment is bound to it."""
        await self._connection.call("DELETE", f"{PATH}/{repository_id}", Success)


class RepositorySets:
    """`/v1/replica/repository-sets`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[RepositorySet]:
        """Every set with its repositories."""
        return (await self._connection.call("GET", SETS, RepositorySetList)).repository_sets

    async def create(self, wanted: CreateRepositorySet) -> RepositorySet:
        """Makes one. Raises `Conflict` when the name is taken."""
        answer = await self._connection.call("POST", SETS, RepositorySetAnswer, body=wanted)
        return answer.repository_set

    async def delete(self, set_id: UUID) -> None:
        """Removes one. Raises `Conflict` while an environment is bound to it."""
        await self._connection.call("DELETE", f"{SETS}/{set_id}", Success)
