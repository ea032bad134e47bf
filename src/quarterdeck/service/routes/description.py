"""`GET /openapi.json`: the description of everything that is served. Needs no key: it tells nothing
that the documentation does not.
"""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.routing import BaseRoute

router = APIRouter()


@router.get("/openapi.json", include_in_schema=False)
async def read(request: Request) -> Response:
    """The description, made when it is first asked for."""
    state = request.app.state
    making: asyncio.Future[bytes] | None = state.description
    if making is None or (making.done() and (making.cancelled() or making.exception())):
        making = state.description = asyncio.ensure_future(_make(request.app.state.routes))
    # Whoever asks in the meantime waits for the same one, and one that leaves does not end it.
    return Response(await asyncio.shield(making), media_type="application/json")


async def _make(routes: Sequence[BaseRoute]) -> bytes:
    from quarterdeck.service.description.document import describe  # slow to import

    return await asyncio.to_thread(describe, routes)
