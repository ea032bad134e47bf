"""Routes that git inside a replica uses for `origin`."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from quarterdeck.service.context import Context
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.git.origin import RepositoryOrigin
from quarterdeck.service.git.routes import ADVERTISED, UPLOADED, GitProtocol
from quarterdeck.service.identity.service import CallerDep
from quarterdeck.service.middleware import decompressed
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.routing import admits
from quarterdeck.service.streams import StreamResponse, while_connected
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import OriginPushed, PushOrigin, SourceRefs

origin_router = APIRouter(prefix="/v1/origin/{repository}", tags=["git"])


async def _origin(context: Context, fleet: FleetDep, caller: CallerDep) -> RepositoryOrigin:
    row = await context.database.read(lambda c: find_workspace(c, str(caller.workspace_id)))
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The replica was deleted.")
    return RepositoryOrigin(context, fleet, row)


OriginDep = Annotated[RepositoryOrigin, Depends(_origin)]


@origin_router.get("/refs")
@admits(keys=False, tokens=False, engines=True)
async def refs(repository: str, origin: OriginDep) -> SourceRefs:
    """Return branches and tags of the source, as they are there now."""
    return await origin.refs(repository)


@origin_router.get(
    "/info/refs",
    response_class=Response,
    responses={200: {"content": {ADVERTISED: {}}, "description": "What can be fetched."}},
)
@admits(keys=False, tokens=False, engines=True)
async def advertise(
    repository: str,
    origin: OriginDep,
    context: Context,
    service: Annotated[Literal["git-upload-pack"], Query(description="Fetching only.")],
    git_protocol: GitProtocol = "",
) -> StreamResponse:
    """Begin a `git fetch` from the source, with the person's credentials."""
    parts = await origin.upload_pack(repository, None, git_protocol)
    headers = {"content-type": ADVERTISED, "cache-control": "no-cache"}
    return StreamResponse(parts, context.stopping, headers)


@origin_router.post(
    "/git-upload-pack",
    response_class=Response,
    responses={200: {"content": {UPLOADED: {}}, "description": "The answer of git."}},
)
@admits(keys=False, tokens=False, engines=True)
async def upload_pack(
    repository: str,
    origin: OriginDep,
    context: Context,
    request: Request,
    git_protocol: GitProtocol = "",
) -> StreamResponse:
    """Go on with a `git fetch`: a request of git's smart HTTP protocol."""
    encoding = request.headers.get("content-encoding")
    body = await asyncio.to_thread(decompressed, await request.body(), encoding)
    parts = await origin.upload_pack(repository, body, git_protocol)
    headers = {"content-type": UPLOADED, "cache-control": "no-cache"}
    return StreamResponse(parts, context.stopping, headers)


@origin_router.post("/push")
@admits(keys=False, tokens=False, engines=True)
async def push(
    repository: str, body: PushOrigin, origin: OriginDep, request: Request
) -> OriginPushed:
    """Push to the source what the push policy allows; a person may be asked in the chat."""
    # An allowed push is dropped once the requesting git has ended.
    return await while_connected(request.receive, origin.push(repository, body))
