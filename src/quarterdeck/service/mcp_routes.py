"""The route of the tools for agents: the Model Context Protocol over streamable HTTP."""

from fastapi import APIRouter, Request, Response

from quarterdeck.service.context import parts
from quarterdeck.service.errors import ApiError
from quarterdeck.service.streams import while_connected
from quarterdeck.wire.errors import ErrorCode

mcp_router = APIRouter()


@mcp_router.post("/v1/mcp", include_in_schema=False)
async def answer(request: Request) -> Response:
    """Answer one message of the protocol, which describes its operations itself."""
    service = parts(request)
    if service.tools is None:
        raise ApiError(ErrorCode.NOT_FOUND, "This service has no tools for agents.")
    if "origin" in request.headers:
        # Only browsers send it; the protocol asks for this check against rebinding of names.
        raise ApiError(ErrorCode.FORBIDDEN, "Web pages may not call the tools.", "Origin: is set")
    await request.body()
    return await while_connected(request.receive, service.tools(request), service.context.stopping)
