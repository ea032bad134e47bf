"""Routes of previews."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from quarterdeck.service.context import Workspace, parts
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.service.previews.service import PreviewService
from quarterdeck.service.routing import admits, both_families, replica_router
from quarterdeck.wire.base import DIGITS
from quarterdeck.wire.previews import (
    LAST_PORT,
    OpenPreview,
    PreviewAnswer,
    PreviewClosed,
    PreviewList,
)

_previews_replica = replica_router("previews")
_inside_previews = APIRouter(tags=["previews"])

PortPath = Annotated[int, Path(ge=1, le=LAST_PORT), DIGITS]


async def _previews(request: Request) -> PreviewService:
    return parts(request).previews


PreviewsDep = Annotated[PreviewService, Depends(_previews)]


@_inside_previews.post(
    "/v1/previews",
    status_code=201,
    responses={200: {"model": PreviewAnswer, "description": "The port is a preview already."}},
)
@admits(keys=False, tokens=False, engines=True)
async def open_preview(
    body: OpenPreview, caller: CallerDep, previews: PreviewsDep, response: Response
) -> PreviewAnswer:
    """Open a preview of a port of the calling workspace."""
    preview, opened = await previews.open(str(caller.workspace_id), body.port)
    if not opened:
        response.status_code = 200
    return PreviewAnswer(preview=preview)


@_inside_previews.delete("/v1/previews/{port}")
@admits(keys=False, tokens=False, engines=True)
async def close_own(port: PortPath, caller: CallerDep, previews: PreviewsDep) -> PreviewClosed:
    """Close a preview of the calling workspace."""
    await previews.remove(str(caller.workspace_id), port)
    return PreviewClosed(port=port)


@_previews_replica.get("/previews")
async def list_all(workspace: Workspace, previews: PreviewsDep) -> PreviewList:
    """Return all previews of a replica; works in every state."""
    return PreviewList(previews=await previews.list(workspace.id))


@_previews_replica.delete("/previews/{port}")
async def close(port: PortPath, workspace: Workspace, previews: PreviewsDep) -> PreviewClosed:
    """Close a preview."""
    await previews.remove(workspace.id, port)
    return PreviewClosed(port=port)


previews_router = both_families(_previews_replica)
previews_router.include_router(_inside_previews)
