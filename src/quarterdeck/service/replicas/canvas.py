"""Canvas files of a replica.

Listing and reading a canvas in every state; nothing is woken.

| state | read from |
|---|---|
| active | the engine |
| preparing, sleeping, error, or about to sleep | the files in the sandbox |
| archived | the archive, which stays packed |

Accepting an upload for a workspace's canvas (operation 14).

| state | answer |
|---|---|
| active | written, 200 |
| preparing, sleeping, archived, or about to sleep | queued, 202; nothing is woken |
| error | WORKSPACE_ERROR_STATE |
"""

import base64
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath
from typing import TypeVar
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink
from quarterdeck.sandboxes.errors import NotAwakeError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.queued_canvas import (
    add_upload,
    drop_uploads,
    kept_since,
    waiting_uploads,
)
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.wire.base import meant, shown
from quarterdeck.wire.engine import WriteCanvas
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.files import (
    CANVAS_DIRECTORY,
    CANVAS_LIMIT,
    CANVAS_NAME_LIMIT,
    CanvasFile,
    CanvasList,
    CanvasUpload,
    display_path,
    file_of,
    items_of,
)
from quarterdeck.wire.replicas import WorkspaceStatus

WAITING_UPLOADS = 200
"""Uploads that may wait for a replica."""
WAITING_BYTES = 100 << 20
"""Of all of them: they are in the database."""


def clean_name(text: str) -> str:
    """Return the name relative to the canvas, without empty parts and `.`.

    Raises:
        ApiError: INVALID_REQUEST when it is empty, too long, absolute, leads upward or has control
            characters.
    """
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise _refused("no control characters")
    if text.startswith("/"):
        raise _refused("relative to the canvas, so not absolute")
    parts = [part for part in text.strip().split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refused("without ..")
    name = "/".join(parts)
    if not name or text.rstrip().endswith("/"):
        raise _refused("not empty")
    if len(_encoded(name)) > CANVAS_NAME_LIMIT:
        raise _refused(f"at most {CANVAS_NAME_LIMIT} bytes")
    return name


def free_name(name: str, used: Collection[str]) -> str:
    """Return the name, or with `-2`, `-3`, ... the first that is free."""
    return next(candidate for candidate in _candidates(name) if candidate not in used)


def _candidates(name: str) -> Iterator[str]:
    yield name
    path = PurePosixPath(name)
    for number in count(2):
        ending = f"-{number}{path.suffix}"
        room = (
            CANVAS_NAME_LIMIT - len(name.encode()) + len(path.name.encode()) - len(ending.encode())
        )
        stem = path.stem.encode()[:room].decode(errors="ignore")
        yield str(path.with_name(stem + ending))


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as e:
        raise _refused("text") from e


def _refused(rule: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        "The canvas cannot hold a file of this name.",
        f"filename: {rule}",
    )


T = TypeVar("T")


async def list_canvas(context: ServiceContext, fleet: Fleet, row: WorkspaceRow) -> CanvasList:
    """Return every file of the canvas.

    Raises:
        ApiError: the engine of an active replica does not answer.
        SandboxError: the files cannot be read.
    """
    listed = await _from_engine(fleet, row, lambda link: link.canvas_list())
    if listed is not None:
        return listed
    return items_of(await _kept(context, row.id))


async def kept_names(context: ServiceContext, workspace_id: str) -> set[str]:
    """Return the names of all files of a canvas, in the sandbox or in the archive.

    Raises:
        SandboxError: the files cannot be read.
    """
    return {name for name, _ in await _kept(context, workspace_id)}


async def read_canvas(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, filename: str
) -> CanvasFile:
    """Return one file with its content, unless it is too large.

    Raises:
        ApiError: NOT_FOUND; or as `list_canvas`.
        SandboxError: as `list_canvas`.
    """
    file = await _from_engine(fleet, row, lambda link: link.canvas_get(filename))
    if file is not None:
        return file
    for name in meant(filename):
        kept = await (await context.driver(row.id)).kept_file(
            row.id, CANVAS_DIRECTORY, name, most=CANVAS_LIMIT + 1
        )
        if kept is not None:
            return file_of(filename, kept.data, max(kept.size, len(kept.data)))
    raise ApiError(ErrorCode.NOT_FOUND, "The canvas has no item of this name.")


async def _kept(context: ServiceContext, workspace_id: str) -> list[tuple[str, int]]:
    driver = await context.driver(workspace_id)
    kept = await driver.kept_files(workspace_id, CANVAS_DIRECTORY)
    return [(shown(file.name), file.size) for file in kept]


async def _from_engine(
    fleet: Fleet, row: WorkspaceRow, request: Callable[[EngineLink], Awaitable[T]]
) -> T | None:
    """Return the engine's answer; None when the replica is not active, or no longer."""
    supervisor = fleet.of(row.id)
    if row.status != WorkspaceStatus.ACTIVE or supervisor.stopping:
        return None
    try:
        return await supervisor.call(row, request)
    except ApiError as e:
        if e.code != ErrorCode.WORKSPACE_NOT_ACTIVE:
            raise
        return None


@dataclass(frozen=True)
class NewUpload:
    """A file for the canvas, under a clean name."""

    name: str
    content: bytes


async def take_upload(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, upload: NewUpload
) -> CanvasUpload:
    """Write the upload, or keep it; then the result has an `upload_id`.

    Raises:
        ApiError: WORKSPACE_ERROR_STATE, NOT_FOUND, CONFLICT when too many wait, or why the engine
            cannot write it.
        SandboxError: it has to wait, and the canvas's files cannot be read for its name.
    """
    _require_whole(row)
    supervisor = fleet.of(row.id)
    if row.status == WorkspaceStatus.ACTIVE and not supervisor.stopping:
        request = WriteCanvas(
            upload_id=uuid4(),
            filename=upload.name,
            base64=base64.b64encode(upload.content).decode(),
        )
        written = await supervisor.call(row, lambda link: link.canvas_put(request))
        return _answer(written.filename, upload)
    try:
        lying = await kept_names(context, row.id)
    except NotAwakeError:
        lying = set[str]()  # the engine looks again
    answer = await context.database.write(lambda c: _keep(c, context, row.id, upload, lying))
    supervisor.nudge()  # it may have become active just now
    return answer


def _keep(
    connection: Connection,
    context: ServiceContext,
    workspace_id: str,
    upload: NewUpload,
    lying: Collection[str],
) -> CanvasUpload:
    """Store an upload under a name that no file of the canvas and no waiting upload has."""
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
    _require_whole(row)
    now = context.clock()
    since = kept_since(now)
    drop_uploads(connection, since)
    waiting = waiting_uploads(connection, workspace_id, since)
    size = sum(one.size_bytes for one in waiting) + len(upload.content)
    if len(waiting) >= WAITING_UPLOADS or size > WAITING_BYTES:
        raise ApiError(
            ErrorCode.CONFLICT,
            "Too many files wait for this replica. Wake it, then upload again.",
            f"at most {WAITING_UPLOADS} files and {WAITING_BYTES} bytes",
        )
    used = {one.filename for one in waiting}.union(lying)
    name, upload_id = free_name(upload.name, used), str(uuid4())
    add_upload(
        connection,
        upload.content,
        id=upload_id,
        workspace_id=workspace_id,
        filename=name,
        created_at=moment_text(now),
    )
    return _answer(name, upload, upload_id)


def _require_whole(row: WorkspaceRow) -> None:
    if row.status == WorkspaceStatus.ERROR:
        raise ApiError(
            ErrorCode.WORKSPACE_ERROR_STATE,
            "The replica has failed. Wake it to try again, then upload.",
            row.error,
        )


def _answer(name: str, upload: NewUpload, upload_id: str | None = None) -> CanvasUpload:
    return CanvasUpload(
        file_path=display_path(name),
        original_name=name,
        size_bytes=len(upload.content),
        upload_id=upload_id,
    )
