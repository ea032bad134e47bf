"""Taking an upload for a workspace's canvas (operation 14).

| state | answer |
|---|---|
| active | written, 200 |
| preparing, sleeping, archived, or about to sleep | queued, 202; nothing is woken |
| error | WORKSPACE_ERROR_STATE |
"""

import base64
from collections.abc import Collection
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.service.canvas.names import free_name
from quarterdeck.service.canvas.queued import kept_since
from quarterdeck.service.canvas.reading import kept_names
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.canvas_uploads import add_upload, drop_uploads, waiting_uploads
from quarterdeck.service.records.workspaces import WorkspaceRow, find_workspace
from quarterdeck.wire.canvas import CanvasUpload, display_path
from quarterdeck.wire.engine import WriteCanvas
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus


@dataclass(frozen=True)
class NewUpload:
    """A file for the canvas, under a clean name."""

    name: str
    content: bytes


async def take_upload(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, upload: NewUpload
) -> CanvasUpload:
    """Writes the upload, or keeps it; then the answer has an `upload_id`.

    Raises:
        ApiError: WORKSPACE_ERROR_STATE, NOT_FOUND, or why the engine cannot write it.
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
    lying = await kept_names(context, row.id)
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
    """Keeps an upload under a name that neither a file of the canvas nor one that waits has."""
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
    _require_whole(row)
    now = context.clock()
    since = kept_since(now)
    drop_uploads(connection, since)
    waiting = {one.filename for one in waiting_uploads(connection, workspace_id, since)}
    taken = waiting.union(lying)
    name, upload_id = free_name(upload.name, taken), str(uuid4())
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
