"""Files of a replica's repositories."""

from uuid import UUID

from quarterdeck.client.connection import Connection
from quarterdeck.wire.files import DEFAULT_FILES, MOST_FILES, FileContent, FoundFile, FoundFiles

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

    async def all(self, replica_id: UUID, q: str = "", *, prefix: str = "") -> list[FoundFile]:
        """Every match of one index: when another takes its place between pages, begins anew."""
        first = await self._page(replica_id, q, prefix)
        found, page = list(first.files), first
        while page.next_cursor is not None:
            page = await self._page(replica_id, q, prefix, page.next_cursor)
            if page.indexed_at == first.indexed_at:
                found += page.files
            else:
                first = page = await self._page(replica_id, q, prefix)
                found = list(first.files)
        return found

    async def _page(
        self, replica_id: UUID, q: str, prefix: str, cursor: str | None = None
    ) -> FoundFiles:
        return await self.search(replica_id, q, prefix=prefix, limit=MOST_FILES, cursor=cursor)

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
