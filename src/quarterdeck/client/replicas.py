"""Replicas: their records and their life cycle."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal
from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.paging import every_record
from quarterdeck.wire.base import Success
from quarterdeck.wire.replicas import (
    CreateReplica,
    ForkReplica,
    Replica,
    ReplicaAnswer,
    ReplicaDetail,
    ReplicaList,
    UncommittedAnswer,
    UncommittedChanges,
    Waking,
    WorkspaceStatusAnswer,
)

PATH = "/v1/replica"
WORKSPACES = "/v1/workspaces"
MOST_PER_PAGE = 100
BASE_SECONDS = 180.0
"""A base unknown to the service is fetched before the answer."""
UPLOAD_SECONDS = 120.0
STOP_SECONDS = 120.0
"""Stopping a sandbox, and removing its files, may take long."""
PACK_SECONDS = 3600.0
"""Archiving packs all files of a workspace before the answer."""

Include = Literal["environment", "diffs"]


class ReplicasApi:
    """`/v1/replica` and the life-cycle routes under `/v1/workspaces`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def create(self, replica: CreateReplica) -> ReplicaDetail:
        """Create one; answered at once, `preparing`.

        Raises:
            NotFoundError: no such environment.
            ConflictError: the name is taken.
            RateLimitedError: the limit of active workspaces is reached.
        """
        answer = await self._connection.call(
            "POST", PATH, ReplicaAnswer, body=replica, timeout=BASE_SECONDS
        )
        return answer.replica

    async def fork(
        self, replica_id: UUID, name: str | None = None, message: str | None = None
    ) -> ReplicaDetail:
        """Create a replica with the same files, branches and uncommitted changes; `preparing`.

        The chat is added as a file next to the repositories.

        Raises:
            ConflictError: a turn is running, or the name is taken.
            NotActiveError: its files are packed or not made yet.
        """
        answer = await self._connection.call(
            "POST",
            f"{PATH}/{replica_id}/fork",
            ReplicaAnswer,
            body=ForkReplica(name=name, message=message),
        )
        return answer.replica

    async def upload_uncommitted(self, bundle: bytes) -> UncommittedChanges:
        """Upload uncommitted changes, for `config.uncommitted` of the replica created next.

        Args:
            bundle: a git bundle of one commit, on top of the commit that was changed.

        Raises:
            PayloadTooLargeError: it is larger than `UNCOMMITTED_LIMIT`.
            InvalidRequestError: the bundle is not valid.
        """
        path, seconds = f"{PATH}/uncommitted", UPLOAD_SECONDS
        answer = await self._connection.post_bytes(path, UncommittedAnswer, bundle, seconds)
        return answer.uncommitted

    async def list(
        self,
        page: int | None = None,
        limit: int | None = None,
        *,
        status: str | None = None,
        source: str | None = None,
        environment_id: UUID | None = None,
    ) -> ReplicaList:
        """Return one page (counted from 1, 1 to 100 records, by default 10), newest first."""
        query = {
            "page": page,
            "limit": limit,
            "status": status,
            "source": source,
            "environment_id": str(environment_id) if environment_id else None,
        }
        return await self._connection.call("GET", PATH, ReplicaList, query=query)

    def all(
        self, *, status: str | None = None, environment_id: UUID | None = None
    ) -> AsyncGenerator[Replica]:
        """Yield every replica once, newest first, page by page."""

        async def read(page: int) -> tuple[Sequence[Replica], int]:
            answer = await self.list(
                page, MOST_PER_PAGE, status=status, environment_id=environment_id
            )
            return answer.replicas, answer.total_pages

        return every_record(read)

    async def get(self, replica_id: UUID, *, include: Sequence[Include] = ()) -> ReplicaDetail:
        """Return one replica with its chats. Never wakes it."""
        query = {"include": ",".join(include) or None}
        answer = await self._connection.call(
            "GET", f"{PATH}/{replica_id}", ReplicaAnswer, query=query
        )
        return answer.replica

    async def delete(self, replica_id: UUID) -> None:
        """Stop everything in it and delete its files."""
        await self._connection.call("DELETE", f"{PATH}/{replica_id}", Success, timeout=STOP_SECONDS)

    async def sleep(self, replica_id: UUID) -> None:
        """Stop the engine, keep the files. Raises `ConflictError` while preparing and on error."""
        await self._connection.call(
            "POST", f"{WORKSPACES}/{replica_id}/sleep", Success, timeout=STOP_SECONDS
        )

    async def archive(self, replica_id: UUID) -> None:
        """Pack the files away, keep the history. Raises `ConflictError` while preparing and on error."""
        await self._connection.call(
            "POST", f"{WORKSPACES}/{replica_id}/archive", Success, timeout=PACK_SECONDS
        )

    async def wake(self, replica_id: UUID) -> Waking:
        """Start it again; answered at once. On an `error` replica this is a retry."""
        return await self._connection.call("POST", f"{WORKSPACES}/{replica_id}/wake", Waking)

    async def forget(self, replica_id: UUID) -> None:
        """Remove the record of a replica whose service no longer exists; for admins.

        Raises:
            ConflictError: that service answers; delete the replica instead.
        """
        await self._connection.call("POST", f"{WORKSPACES}/{replica_id}/forget", Success)

    async def status(self, replica_id: UUID) -> WorkspaceStatusAnswer:
        """Return its state, the time of the engine's last report, and the newest message."""
        return await self._connection.call(
            "GET", f"{WORKSPACES}/{replica_id}/status", WorkspaceStatusAnswer
        )
