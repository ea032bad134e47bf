"""Routes of a replica's files and canvas."""

from typing import Annotated

from fastapi import Depends, File, Form, Query, Request, Response, UploadFile

from quarterdeck.service.context import Context, Workspace, parts
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.replicas.canvas import (
    NewUpload,
    clean_name,
    list_canvas,
    read_canvas,
    take_upload,
)
from quarterdeck.service.replicas.file_search import FileQuery, FileSearch
from quarterdeck.service.routing import both_families, replica_router
from quarterdeck.wire.base import DIGITS
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import (
    CANVAS_LIMIT,
    DEFAULT_FILES,
    LONGEST_PATH,
    MOST_FILES,
    CanvasFile,
    CanvasList,
    CanvasUpload,
    FileContent,
    FoundFiles,
)

LONGEST_QUERY = 1_000

_repo_files_replica = replica_router("files")


async def _file_search(request: Request) -> FileSearch:
    return parts(request).file_search


@_repo_files_replica.get("/repo-files/search", response_model_exclude_unset=True)
async def search(
    workspace: Workspace,
    file_search: Annotated[FileSearch, Depends(_file_search)],
    q: Annotated[str, Query(max_length=LONGEST_QUERY)] = "",
    prefix: Annotated[str, Query(max_length=LONGEST_PATH)] = "",
    limit: Annotated[int, DIGITS] = DEFAULT_FILES,
    cursor: str | None = None,
    refresh: bool = False,
) -> FoundFiles:
    """Return files whose names or paths match, best first; works in every state without waking the replica."""
    bounded = min(max(limit, 1), MOST_FILES)
    query = FileQuery(q=q, prefix=prefix, limit=bounded, cursor=cursor or None, refresh=refresh)
    return await file_search.search(workspace, query)


@_repo_files_replica.get("/repo-files/content", response_model_exclude_none=True)
async def content(
    workspace: Workspace,
    fleet: FleetDep,
    repo_name: Annotated[str, Query(alias="repoName")],
    path: Annotated[str, Query(max_length=LONGEST_PATH)],
) -> FileContent:
    """Return a file's first MiB; the replica must be active."""
    return await fleet.of(workspace.id).call(
        workspace, lambda link: link.files_read(repo_name, path)
    )


repo_files_router = both_families(_repo_files_replica)


_canvas_replica = replica_router("canvas")


@_canvas_replica.get("/canvas")
async def list_all(context: Context, fleet: FleetDep, workspace: Workspace) -> CanvasList:
    """Return every file of the canvas, in every state."""
    return await list_canvas(context, fleet, workspace)


@_canvas_replica.get("/canvas/{filename:path}", response_model_exclude_none=True)
async def get(filename: str, context: Context, fleet: FleetDep, workspace: Workspace) -> CanvasFile:
    """Return one file with its content, in every state."""
    return await read_canvas(context, fleet, workspace, filename)


@_canvas_replica.post(
    "/canvas",
    response_model_exclude_none=True,
    responses={202: {"model": CanvasUpload, "description": "Queued until the replica starts."}},
)
async def upload(
    file: Annotated[UploadFile, File(description="The file, at most 5 MB.")],
    filename: Annotated[str, Form(description="Path in the canvas, relative and without `..`.")],
    response: Response,
    context: Context,
    fleet: FleetDep,
    workspace: Workspace,
) -> CanvasUpload:
    """Write a file, or keep it for a replica that is not active; nothing is woken."""
    name = clean_name(filename)
    if file.size is None or file.size > CANVAS_LIMIT:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "The file is too large for the canvas.",
            f"file: at most {CANVAS_LIMIT} bytes",
        )
    stored = await take_upload(context, fleet, workspace, NewUpload(name, await file.read()))
    if stored.upload_id is not None:
        response.status_code = 202
    return stored


canvas_router = both_families(_canvas_replica)
