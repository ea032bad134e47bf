"""Previews (INTERFACE 6): opened from within a workspace, listed and closed from outside as well."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Request

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.context import Workspace
from quarterdeck.service.identity.doors import admits
from quarterdeck.service.previews.registry import Previews
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import GivenWhole
from quarterdeck.wire.previews import (
    LAST_PORT,
    OpenPreview,
    PreviewAnswer,
    PreviewClosed,
    PreviewList,
)

_replica = replica_router("previews")
_inside = APIRouter(tags=["previews"])

PortPath = Annotated[GivenWhole, Path(ge=1, le=LAST_PORT)]


async def _previews(request: Request) -> Previews:
    return cast("Previews", request.app.state.previews)


PreviewsDep = Annotated[Previews, Depends(_previews)]


@_inside.post("/v1/previews", status_code=201)
@admits(keys=False, tokens=False, engines=True)
async def open_preview(
    body: OpenPreview, caller: CallerDep, previews: PreviewsDep
) -> PreviewAnswer:
    """Makes a port of the calling workspace a preview."""
    return PreviewAnswer(preview=await previews.open(str(caller.workspace_id), body.port))


@_inside.delete("/v1/previews/{port}")
@admits(keys=False, tokens=False, engines=True)
async def close_own(port: PortPath, caller: CallerDep, previews: PreviewsDep) -> PreviewClosed:
    """Closes a preview of the calling workspace."""
    await previews.remove(str(caller.workspace_id), port)
    return PreviewClosed(port=port)


@_replica.get("/previews")
async def list_all(workspace: Workspace, previews: PreviewsDep) -> PreviewList:
    """All previews of a replica; works in every state."""
    return PreviewList(previews=await previews.list(workspace.id))


@_replica.delete("/previews/{port}")
async def close(port: PortPath, workspace: Workspace, previews: PreviewsDep) -> PreviewClosed:
    """Closes a preview."""
    await previews.remove(workspace.id, port)
    return PreviewClosed(port=port)


router = both_families(_replica)
router.include_router(_inside)
