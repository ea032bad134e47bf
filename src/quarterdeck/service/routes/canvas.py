"""The canvas (operation 14; INTERFACE 6). Nothing here wakes anybody."""

from typing import Annotated

from fastapi import File, Form, Response, UploadFile

from quarterdeck.service.canvas.names import clean_name
from quarterdeck.service.canvas.reading import list_canvas, read_canvas
from quarterdeck.service.canvas.uploading import NewUpload, take_upload
from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.canvas import CANVAS_LIMIT, CanvasFile, CanvasList, CanvasUpload
from quarterdeck.wire.errors import ErrorCode

_replica = replica_router("canvas")


@_replica.get("/canvas")
async def list_all(context: Context, fleet: FleetDep, workspace: Workspace) -> CanvasList:
    """Every file of the canvas, in every state."""
    return await list_canvas(context, fleet, workspace)


@_replica.get("/canvas/{filename:path}", response_model_exclude_none=True)
async def get(filename: str, context: Context, fleet: FleetDep, workspace: Workspace) -> CanvasFile:
    """One file with its content, in every state."""
    return await read_canvas(context, fleet, workspace, filename)


@_replica.post(
    "/canvas",
    response_model_exclude_none=True,
    responses={202: {"model": CanvasUpload, "description": "Queued until the replica starts."}},
)
async def upload(
    file: Annotated[UploadFile, File()],
    filename: Annotated[str, Form()],
    response: Response,
    context: Context,
    fleet: FleetDep,
    workspace: Workspace,
) -> CanvasUpload:
    """Writes a file, or keeps it for a replica that is not active; nothing is woken."""
    name = clean_name(filename)
    if file.size is None or file.size > CANVAS_LIMIT:
        raise ApiError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            "The file is too large for the canvas.",
            f"file: at most {CANVAS_LIMIT} bytes",
        )
    taken = await take_upload(context, fleet, workspace, NewUpload(name, await file.read()))
    if taken.upload_id is not None:
        response.status_code = 202
    return taken


router = both_families(_replica)
