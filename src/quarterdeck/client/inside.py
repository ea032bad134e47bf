"""Inside a replica: commands, files, canvas, previews, and the output of its hooks."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.paging import MOST_PAGES, endless
from quarterdeck.client.paths import segment
from quarterdeck.wire.files import (
    DEFAULT_FILES,
    MOST_FILES,
    CanvasFile,
    CanvasItem,
    CanvasList,
    CanvasUpload,
    FileContent,
    FoundFile,
    FoundFiles,
)
from quarterdeck.wire.previews import (
    OpenPreview,
    Preview,
    PreviewAnswer,
    PreviewClosed,
    PreviewList,
)
from quarterdeck.wire.setup import HookLogs
from quarterdeck.wire.terminals import DEFAULT_TIMEOUT_SECONDS, ExecRequest, ExecResponse

GRACE_SECONDS = 15.0
"""Time for the answer beyond the command's own time-out."""


class ExecApi:
    """`/v1/replica/{id}/exec`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def run(
        self,
        replica_id: UUID,
        command: str,
        timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS,
        *,
        in_repository: bool = False,
    ) -> ExecResponse:
        """Run a shell command of 1 to 50 seconds; the replica must be active (`NotActiveError`).

        Args:
            in_repository: it starts in the repository, if the replica has exactly one, else above all.
        """
        request = ExecRequest(
            command=command, timeout_seconds=timeout_seconds, in_repository=in_repository or None
        )
        return await self._connection.call(
            "POST",
            f"/v1/replica/{replica_id}/exec",
            ExecResponse,
            body=request,
            timeout=timeout_seconds + GRACE_SECONDS,
        )


INDEXING_SECONDS = 75.0
"""A search may wait for the replica to index its files."""


class FilesApi:
    """`/v1/workspaces/{id}/repo-files`."""

    def __init__(self, connection: HttpConnection) -> None:
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
        """Return a page of the files whose names or paths match, best first; never wakes the replica.

        `refresh` makes the first page of an active replica wait for a new index. When `indexed_at`
        differs from the page before, start again.
        """
        return await self._connection.call(
            "GET",
            f"{_files_path(replica_id)}/search",
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
        """Return every match of one index; when it is replaced between pages, start again."""
        first = await self._page(replica_id, q, prefix)
        files, page = list(first.files), first
        for _ in range(MOST_PAGES):
            if page.next_cursor is None:
                return files
            page = await self._page(replica_id, q, prefix, page.next_cursor)
            if page.indexed_at == first.indexed_at:
                files += page.files
            else:
                first = page = await self._page(replica_id, q, prefix)
                files = list(first.files)
        raise endless()

    async def _page(
        self, replica_id: UUID, q: str, prefix: str, cursor: str | None = None
    ) -> FoundFiles:
        return await self.search(replica_id, q, prefix=prefix, limit=MOST_FILES, cursor=cursor)

    async def content(self, replica_id: UUID, repo_name: str, path: str) -> FileContent:
        """Return a file's first MiB. Raises `NotActiveError`."""
        return await self._connection.call(
            "GET",
            f"{_files_path(replica_id)}/content",
            FileContent,
            query={"repoName": repo_name, "path": path},
        )


def _files_path(replica_id: UUID) -> str:
    return f"/v1/workspaces/{replica_id}/repo-files"


class CanvasApi:
    """`/v1/workspaces/{id}/canvas`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[CanvasItem]:
        """Return every file. Raises `NotActiveError`."""
        return (await self._connection.call("GET", _canvas_path(replica_id), CanvasList)).items

    async def get(self, replica_id: UUID, filename: str) -> CanvasFile:
        """Return one file, without its content when it is too large. Raises `NotActiveError`."""
        parts = "/".join(map(segment, filename.split("/")))
        path = f"{_canvas_path(replica_id)}/{parts}"
        return await self._connection.call("GET", path, CanvasFile)

    async def upload(self, replica_id: UUID, filename: str, content: bytes) -> CanvasUpload:
        """Upload a file of at most 5 MB.

        A replica that is not active gets it when it starts; then the answer has an `upload_id`,
        which a message can name.

        Raises:
            PayloadTooLargeError: it is larger.
            ConflictError: the replica has failed.
        """
        return await self._connection.upload(
            _canvas_path(replica_id), CanvasUpload, filename, content
        )


def _canvas_path(replica_id: UUID) -> str:
    return f"/v1/workspaces/{replica_id}/canvas"


class PreviewsApi:
    """`/v1/workspaces/{id}/previews`, and `/v1/previews` for calls from within a workspace."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self, replica_id: UUID) -> list[Preview]:
        """Return all previews; works in every state of the replica."""
        return (
            await self._connection.call("GET", _previews_path(replica_id), PreviewList)
        ).previews

    async def close(self, replica_id: UUID, port: int) -> None:
        """Make a port an ordinary one again."""
        await self._connection.call("DELETE", f"{_previews_path(replica_id)}/{port}", PreviewClosed)

    async def open_own(self, port: int) -> Preview:
        """Make a port a preview from within a workspace, with its engine's secret.

        Raises:
            ConflictError: it already is one.
        """
        body = OpenPreview(port=port)
        answer = await self._connection.call("POST", "/v1/previews", PreviewAnswer, body=body)
        return answer.preview

    async def close_own(self, port: int) -> None:
        """Make a port an ordinary one again from within a workspace."""
        await self._connection.call("DELETE", f"/v1/previews/{port}", PreviewClosed)


def _previews_path(replica_id: UUID) -> str:
    return f"/v1/workspaces/{replica_id}/previews"


class HooksApi:
    """`/v1/replica/{id}/hooks`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def read(self, replica_id: UUID) -> HookLogs:
        """Return every run of its warm and start hooks, oldest first. Never wakes it."""
        return await self._connection.call("GET", f"/v1/replica/{replica_id}/hooks", HookLogs)
