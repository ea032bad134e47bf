"""Files of a replica's repositories."""

from collections.abc import AsyncIterator
from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.files import DEFAULT_FILES, FileContent, FoundFile, FoundFiles

INDEXING_SECONDS = 75.0
"""A search may wait for the replica to look at its files."""


class Files:
    """`/v1/workspaces/{id}/repo-files`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search(
        self,
        replica_id: UUID,
        q: str = "",
        *,
        prefix: str = "",
        limit: int = DEFAULT_FILES,
        cursor: str | None = None,
        refresh: bool = False,
    ) -> FoundFiles:
        """A page of the files whose names or paths match, best first; wakes nobody.

        `refresh` makes the first page of an active replica wait for what is there now. When
        `indexed_at` differs from the page before, begin anew.
        """
        return await self._connection.call(
            "GET",
            f"{_path(replica_id)}/search",
            FoundFiles,
            query={
                "q": q,
                "prefix": prefix,
                "limit": limit,
                "cursor": cursor,
                "refresh": "true" if refresh else None,
            },
            timeout=INDEXING_SECONDS,
        )

    async def all(
        self, replica_id: UUID, q: str = "", *, prefix: str = ""
    ) -> AsyncIterator[FoundFile]:
        """Every match, page by page, as long as the index stays the same."""
        page = await self.search(replica_id, q, prefix=prefix, limit=1_000)
        while True:
            for file in page.files:
                yield file
            if page.next_cursor is None:
                return
            page = await self.search(
                replica_id, q, prefix=prefix, limit=1_000, cursor=page.next_cursor
            )

    async def content(self, replica_id: UUID, repo_name: str, path: str) -> FileContent:
        """A file's first MiB. Raises `NotActive`."""
        return await self._connection.call(
            "GET",
            f"{_path(replica_id)}/content",
            FileContent,
            query={"repoName": repo_name, "path": path},
        )


def _path(replica_id: UUID) -> str:
    return f"/v1/workspaces/{replica_id}/repo-files"
