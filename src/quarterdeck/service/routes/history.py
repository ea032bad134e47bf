"""History of a replica or of one chat (specification, operation 15; INTERFACE 5)."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.history import HistoryQuery, open_page, written
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.wire.base import GivenId, GivenWhole
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.history import History

JSON = "application/json"

_replica = replica_router("history")


@_replica.get("/history", response_model=History)
async def read(
    context: Context,
    workspace: Workspace,
    chat_id: GivenId | None = None,
    limit: Annotated[GivenWhole | None, Query(ge=1)] = None,
    before_event: Annotated[GivenWhole | None, Query(alias="beforeEvent", ge=0)] = None,
    before_turn: Annotated[GivenWhole | None, Query(alias="beforeTurn", ge=0)] = None,
    before_cursor: Annotated[str | None, Query(alias="beforeCursor", max_length=500)] = None,
) -> Response:
    """A page from the end; never wakes the workspace.

    A chat of codex has its turns with it, `agentAspTranscript`: those whose end is in the page.
    """
    query = HistoryQuery(
        None if chat_id is None else str(chat_id), limit, before_event, before_turn, before_cursor
    )
    page = await open_page(context.database, context.turn_places, workspace.id, query)
    if page is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No chat of this replica has this id.", "chat_id")
    body = written(context.database, page)
    if not page.short:
        return StreamingResponse(body, media_type=JSON)
    return Response(b"".join([piece async for piece in body]), media_type=JSON)


router = both_families(_replica)
