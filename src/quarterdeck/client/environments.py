"""Environments: what a workspace is made from."""

from typing import Literal
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.base import Success
from quarterdeck.wire.environments import (
    ChangeEnvironment,
    CreateEnvironment,
    Environment,
    EnvironmentAnswer,
    EnvironmentList,
)

PATH = "/v1/environments"


class Environments:
    """`/v1/environments`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(
        self, *, scope: Literal["org", "user", "all"] | None = None
    ) -> list[Environment]:
        """The environments of a scope; without one, as the service chooses."""
        answer = await self._connection.call("GET", PATH, EnvironmentList, query={"scope": scope})
        return answer.environments

    async def create(self, environment: CreateEnvironment) -> Environment:
        """Makes one. Raises `Conflict` when the name is taken in its scope."""
        answer = await self._connection.call("POST", PATH, EnvironmentAnswer, body=environment)
        return answer.environment

    async def get(self, environment: UUID | str) -> Environment:
        """One environment by its id, or the global one by `global`."""
        answer = await self._connection.call("GET", f"{PATH}/{environment}", EnvironmentAnswer)
        return answer.environment

    async def change(self, environment: UUID, change: ChangeEnvironment) -> Environment:
        """Changes the fields that were set; null clears one.

        Raises:
            InvalidRequest: the global one, or a field that is taken from a source.
            Conflict: the name is taken in its scope.
        """
        answer = await self._connection.call(
            "PATCH", f"{PATH}/{environment}", EnvironmentAnswer, body=change
        )
        return answer.environment

    async def delete(self, environment: UUID) -> None:
        """Removes one with its parts. Raises `Conflict` while it is used, and for the global one."""
        await self._connection.call("DELETE", f"{PATH}/{environment}", Success)
