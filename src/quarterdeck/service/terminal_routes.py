"""Routes of terminals."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Header, Response

from quarterdeck.engine.link import EngineError
from quarterdeck.service.context import Context, Workspace
from quarterdeck.service.description import stream_of
from quarterdeck.service.errors import ApiError
from quarterdeck.service.event_log import PING_SECONDS
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.fleet.runtime import api_error
from quarterdeck.service.routing import both_families, replica_router
from quarterdeck.service.streams import StreamResponse, TerminalFeed
from quarterdeck.wire.base import GivenId, Success
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.terminals import (
    CreateTerminal,
    ResizeTerminal,
    TerminalAnswer,
    TerminalInput,
    TerminalList,
)

_OFFSET = re.compile(r"[0-9]{1,18}")
_SESSION = "/terminal/sessions/{session_id}"

_terminals_replica = replica_router("terminals")


@_terminals_replica.get("/terminal/sessions")
async def list_all(fleet: FleetDep, workspace: Workspace) -> TerminalList:
    """Return all sessions, ended ones that were not closed included."""
    with _predating():
        return await fleet.of(workspace.id).call(workspace, lambda link: link.terminal_list())


@_terminals_replica.post("/terminal/sessions", status_code=201)
async def create(body: CreateTerminal, fleet: FleetDep, workspace: Workspace) -> TerminalAnswer:
    """Open a terminal in the sandbox."""
    with _predating():
        return await fleet.of(workspace.id).call(workspace, lambda link: link.terminal_create(body))


@_terminals_replica.post(_SESSION + "/input")
async def send_input(
    session_id: GivenId, body: TerminalInput, fleet: FleetDep, workspace: Workspace
) -> Success:
    """Type into a terminal; repeated input is dropped."""
    await fleet.of(workspace.id).call(workspace, lambda link: link.terminal_input(session_id, body))
    return Success()


@_terminals_replica.post(_SESSION + "/resize")
async def resize(
    session_id: GivenId, body: ResizeTerminal, fleet: FleetDep, workspace: Workspace
) -> Success:
    """Change the size."""
    await fleet.of(workspace.id).call(
        workspace, lambda link: link.terminal_resize(session_id, body)
    )
    return Success()


@_terminals_replica.delete(_SESSION)
async def close(session_id: GivenId, fleet: FleetDep, workspace: Workspace) -> Success:
    """End everything in a terminal and forget it."""
    await fleet.of(workspace.id).call(workspace, lambda link: link.terminal_close(session_id))
    return Success()


@_terminals_replica.get(
    _SESSION + "/stream", response_class=StreamResponse, responses=stream_of("TerminalEvent")
)
async def stream(
    session_id: GivenId,
    context: Context,
    fleet: FleetDep,
    workspace: Workspace,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Return the output from `Last-Event-ID` on when it is retained, else a replay first."""
    offset = _offset(last_event_id)
    link = await fleet.of(workspace.id).open_link(workspace)
    try:
        await link.terminal_stream(session_id, offset)
    except EngineError as e:
        await link.close()
        raise api_error(e) from e
    except BaseException:
        await link.close()
        raise
    return StreamResponse(TerminalFeed(link, PING_SECONDS), context.stopping)


@contextmanager
def _predating() -> Generator[None]:
    """Report a missing route as an engine without terminals; these calls name no terminal."""
    try:
        yield
    except ApiError as e:
        if e.code is not ErrorCode.NOT_FOUND:
            raise
        raise ApiError(
            ErrorCode.TERMINAL_UNSUPPORTED,
            "The replica's engine is older than terminals. Put it to sleep and wake it.",
        ) from e


def _offset(last_event_id: str | None) -> int | None:
    if not last_event_id:
        return None
    if not _OFFSET.fullmatch(last_event_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The stream cannot be resumed from there.",
            "Last-Event-ID: the `id:` of a message of this stream, a whole number",
        )
    return int(last_event_id)


terminals_router = both_families(_terminals_replica)
