"""Replicas: make, look at, put to sleep, archive, wake, remove."""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.base import Success
from quarterdeck.wire.replicas import (
    CreateReplica,
    Replica,
    ReplicaAnswer,
    ReplicaDetail,
    ReplicaList,
    Waking,
    WorkspaceStatusAnswer,
)

PATH = "/v1/replica"
WORKSPACES = "/v1/workspaces"
MOST_PER_PAGE = 100
STOP_SECONDS = 120.0
"""Stopping a sandbox, and removing its files, may take long."""
PACK_SECONDS = 3600.0
"""Archiving packs all files of a workspace before it is answered."""

Include = Literal["environment", "diffs"]


class Replicas:
    """`/v1/replica` and the life-cycle routes under `/v1/workspaces`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(self, replica: CreateReplica) -> ReplicaDetail:
        """Makes one; answered at once, `preparing`.

        Raises:
            NotFound: no such environment.
            Conflict: the name is taken.
            RateLimited: as many workspaces are active as are allowed.
        """
        answer = await self._connection.call("POST", PATH, ReplicaAnswer, body=replica)
        return answer.replica

    async def list(
        self,
        page: int | None = None,
        limit: int | None = None,
        *,
        status: str | None = None,
        source: str | None = None,
        environment_id: UUID | None = None,
    ) -> ReplicaList:
        """One page (counted from 1, 1 to 100 records, by default 10), newest first."""
        query = {
            "page": page,
            "limit": limit,
            "status": status,
            "source": source,
            "environment_id": str(environment_id) if environment_id else None,
        }
        return await self._connection.call("GET", PATH, ReplicaList, query=query)

    async def all(
        self, *, status: str | None = None, environment_id: UUID | None = None
    ) -> AsyncGenerator[Replica]:
        """Every replica once, newest first, page by page."""
        seen: set[UUID] = set()
        page = 1
        while True:
            found = await self.list(
                page, MOST_PER_PAGE, status=status, environment_id=environment_id
            )
            for replica in found.replicas:
                if replica.id not in seen:
                    seen.add(replica.id)
                    yield replica
            if page >= found.total_pages or not found.replicas:
                return
            page += 1

    async def get(self, replica_id: UUID, *, include: Sequence[Include] = ()) -> ReplicaDetail:
        """One replica with its chats. Never wakes it."""
        query = {"include": ",".join(include) or None}
        answer = await self._connection.call(
            "GET", f"{PATH}/{replica_id}", ReplicaAnswer, query=query
        )
        return answer.replica

    async def delete(self, replica_id: UUID) -> None:
        """Stops everything in it and removes its files."""
        await self._connection.call("DELETE", f"{PATH}/{replica_id}", Success, timeout=STOP_SECONDS)

    async def sleep(self, replica_id: UUID) -> None:
        """Stops the engine, keeps the files. Raises `Conflict` while preparing and on error."""
        await self._connection.call(
            "POST", f"{WORKSPACES}/{replica_id}/sleep", Success, timeout=STOP_SECONDS
        )

    async def archive(self, replica_id: UUID) -> None:
        """Packs the files away, keeps the history. Raises `Conflict` while preparing and on error."""
        await self._connection.call(
            "POST", f"{WORKSPACES}/{replica_id}/archive", Success, timeout=PACK_SECONDS
        )

    async def wake(self, replica_id: UUID) -> Waking:
        """Starts it again; answered at once. On an `error` replica this is another try."""
        return await self._connection.call("POST", f"{WORKSPACES}/{replica_id}/wake", Waking)

    async def status(self, replica_id: UUID) -> WorkspaceStatusAnswer:
        """Its state, when the engine was last heard of, and the newest message."""
        return await self._connection.call(
            "GET", f"{WORKSPACES}/{replica_id}/status", WorkspaceStatusAnswer
        )
