"""Warm pools. `environment` is an id, or `global`."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.client.environments import PATH
from quarterdeck.wire.warm_pools import (
    ChangeWarmPool,
    PooledWorkspace,
    PooledWorkspaceList,
    WarmPool,
    WarmPoolAnswer,
)


class WarmPools:
    """`/v1/environments/{id}/warm-pools` and `/v1/warm-pools`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def switch(self, environment: UUID | str, enabled: bool) -> WarmPool:
        """Switches a pool on or off; on lets one that failed try again at once."""
        answer = await self._connection.call(
            "PUT",
            f"{PATH}/{environment}/warm-pools",
            WarmPoolAnswer,
            body=ChangeWarmPool(enabled=enabled),
            repeatable=True,
        )
        return answer.warm_pool

    async def workspaces(self, pool_id: UUID) -> list[PooledWorkspace]:
        """What waits in a pool, oldest first."""
        answer = await self._connection.call(
            "GET", f"/v1/warm-pools/{pool_id}/workspaces", PooledWorkspaceList
        )
        return answer.workspaces
