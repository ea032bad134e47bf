"""`GET /openapi.json`: the description of everything that is served. Needs no key: it tells nothing
that the documentation does not.
"""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

router = APIRouter()


@router.get("/openapi.json", include_in_schema=False)
async def read(request: Request) -> Response:
    """The description, made when it is first asked for."""
    state = request.app.state
    made: bytes | None = getattr(state, "description", None)
    if made is None:
        from quarterdeck.service.description.document import describe  # slow to import

        # Two that ask at the same time make the same one.
        made = state.description = await asyncio.to_thread(describe, request.app.routes)
    return Response(made, media_type="application/json")
