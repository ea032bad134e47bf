"""Replicas, and operations inside one: commands, files, canvas, previews."""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal
from urllib.parse import quote
from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.wire.base import Success
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
from quarterdeck.wire.permissions import ChangePermissions, ReplicaPermissions
from quarterdeck.wire.previews import (
    OpenPreview,
    Preview,
    PreviewAnswer,
    PreviewClosed,
    PreviewList,
)
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
from quarterdeck.wire.setup import HookLogs
from quarterdeck.wire.terminals import DEFAULT_TIMEOUT_SECONDS, ExecRequest, ExecResponse

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

    async def permissions(self, replica_id: UUID) -> ReplicaPermissions:
        """Return which permission requests of its agents are answered without a person."""
        path = f"{PATH}/{replica_id}/permissions"
        return await self._connection.call("GET", path, ReplicaPermissions)

    async def change_permissions(
        self, replica_id: UUID, change: ChangePermissions
    ) -> ReplicaPermissions:
        """Change its policy, or add and remove rules; what is not set stays. Effective at once.

        Raises:
            InvalidRequestError: it would have too many rules.
        """
        path = f"{PATH}/{replica_id}/permissions"
        return await self._connection.call("PATCH", path, ReplicaPermissions, body=change)

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

    async def all(
        self, *, status: str | None = None, environment_id: UUID | None = None
    ) -> AsyncGenerator[Replica]:
        """Yield every replica once, newest first, page by page."""
        seen: set[UUID] = set()
        page = 1
        while True:
            answer = await self.list(
                page, MOST_PER_PAGE, status=status, environment_id=environment_id
            )
            for replica in answer.replicas:
                if replica.id not in seen:
                    seen.add(replica.id)
                    yield replica
            if page >= answer.total_pages or not answer.replicas:
                return
            page += 1

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


GRACE_SECONDS = 15.0
"""Time for the answer beyond the command's own time-out."""


class ExecApi:
    """`/v1/replica/{id}/exec`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def run(
        self, replica_id: UUID, command: str, timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    ) -> ExecResponse:
        """Run a shell command of 1 to 50 seconds; the replica must be active (`NotActiveError`)."""
        return await self._connection.call(
            "POST",
            f"/v1/replica/{replica_id}/exec",
            ExecResponse,
            body=ExecRequest(command=command, timeout_seconds=timeout_seconds),
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
        while page.next_cursor is not None:
            page = await self._page(replica_id, q, prefix, page.next_cursor)
            if page.indexed_at == first.indexed_at:
                files += page.files
            else:
                first = page = await self._page(replica_id, q, prefix)
                files = list(first.files)
        return files

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
        path = f"{_canvas_path(replica_id)}/{quote(filename)}"
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
