"""Environments: what a workspace is made from."""

from typing import Literal
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.environments import (
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
