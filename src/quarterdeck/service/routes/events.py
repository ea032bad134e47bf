"""The event stream of a replica (specification, operation 16; INTERFACE 5)."""

import re
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.errors import ApiError
from quarterdeck.service.routes import both_families, replica_router
from quarterdeck.service.streams import StreamResponse
from quarterdeck.wire.errors import ErrorCode

_replica = replica_router("events")

_INDEX = re.compile(r"[0-9]{1,18}")


@_replica.get("/events", response_class=StreamResponse)
async def follow(
    context: Context,
    workspace: Workspace,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Everything after `Last-Event-ID`, then live; without it live only. In every state."""
    after = index_of(last_event_id)
    subscription = await context.event_log.subscribe(workspace.id, after)
    return StreamResponse(subscription, context.stopping)


def index_of(last_event_id: str | None) -> int | None:
    """The place behind which a stream goes on; None for live only.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not last_event_id:
        return None
    if not _INDEX.fullmatch(last_event_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The stream cannot be resumed from there.",
            "Last-Event-ID: the `id:` of an event of this stream, a whole number",
        )
    return int(last_event_id)


router = both_families(_replica)
