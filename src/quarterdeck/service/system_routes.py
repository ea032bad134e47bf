"""Routes of the service itself."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy import select
from starlette.routing import BaseRoute

from quarterdeck import __version__
from quarterdeck.service.context import Context, parts
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.service.middleware import RETRY_AFTER_SECONDS, answer
from quarterdeck.service.ownership import services_known
from quarterdeck.service.routing import admits
from quarterdeck.service.streams import while_connected
from quarterdeck.wire.account import OK, UNAVAILABLE, Health, ServiceList
from quarterdeck.wire.errors import ErrorCode

ANSWER_SECONDS = 3.0
"""A database that does not answer within this counts as lost."""

health_router = APIRouter(tags=["health"])


@health_router.get("/v1/health", response_model=Health)
@admits(public=True, public_inside=True)
async def read_health(context: Context) -> Health | Response:
    """Tell whether the service can read its database; 503 when it cannot."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await context.database.read(lambda c: c.execute(select(1)).scalar())
    except (StorageError, TimeoutError):
        return _unavailable()
    return Health(status=OK, version=__version__)


def _unavailable() -> Response:
    error = ApiError(
        ErrorCode.SERVICE_UNAVAILABLE,
        "The service's database cannot be reached now. Try again shortly.",
        retry_after=RETRY_AFTER_SECONDS,
    )
    health: dict[str, Any] = {"status": UNAVAILABLE, "version": __version__}
    return answer(error, also=health)


services_router = APIRouter(tags=["services"])


@services_router.get("/v1/services")
async def list_all(context: Context) -> ServiceList:
    """Return every service of the database; over a database of its own the one that answers."""
    return ServiceList(services=await services_known(context))


description_router = APIRouter()


@description_router.get("/openapi.json", include_in_schema=False)
@admits(public=True)
async def read(request: Request) -> Response:
    """Return the description, made when it is first asked for."""
    state = request.app.state
    making: asyncio.Future[bytes] | None = state.description
    if making is None or (making.done() and (making.cancelled() or making.exception())):
        making = state.description = asyncio.ensure_future(_make(request.app.state.routes))
    # Concurrent callers wait for the same one, and one that disconnects does not cancel it.
    return Response(await asyncio.shield(making), media_type="application/json")


async def _make(routes: Sequence[BaseRoute]) -> bytes:
    from quarterdeck.service.description import describe  # slow to import

    return await asyncio.to_thread(describe, routes)


mcp_router = APIRouter()


@mcp_router.post("/v1/mcp", include_in_schema=False)
async def call_tools(request: Request) -> Response:
    """Answer one message of the protocol, which describes its operations itself."""
    service = parts(request)
    if service.tools is None:
        raise ApiError(ErrorCode.NOT_FOUND, "This service has no tools for agents.")
    if "origin" in request.headers:
        # Only browsers send it; the protocol asks for this check against rebinding of names.
        raise ApiError(ErrorCode.FORBIDDEN, "Web pages may not call the tools.", "Origin: is set")
    await request.body()
    return await while_connected(request.receive, service.tools(request), service.context.stopping)
