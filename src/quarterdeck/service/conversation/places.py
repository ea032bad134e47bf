"""A chat of a replica, wherever it may be changed: in its rows, or in its engine."""

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.supervisor import LOST, Supervisor, require_active
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.chats import find_chat
from quarterdeck.service.records.workspaces import WorkspaceRow, find_workspace
from quarterdeck.wire.chats import Chat
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

T = TypeVar("T")

ATTEMPTS = 3
"""A workspace that changes its state more often than this in between is left alone."""


def known_chat(connection: Connection, workspace_id: str, chat_id: UUID | str) -> Chat:
    """The chat of an id.

    Raises:
        ApiError: NOT_FOUND.
    """
    chat = find_chat(connection, workspace_id, str(chat_id))
    if chat is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The replica has no chat with this id.")
    return chat


def current(connection: Connection, workspace_id: str) -> WorkspaceRow:
    """The workspace as it is within this transaction.

    Raises:
        ApiError: NOT_FOUND.
    """
    row = find_workspace(connection, workspace_id)
    if row is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.")
    return row


async def require_chat(context: ServiceContext, row: WorkspaceRow, chat_id: UUID) -> None:
    """The replica is active and has the chat.

    Raises:
        ApiError: NOT_FOUND before WORKSPACE_NOT_ACTIVE.
    """
    await context.database.read(lambda c: known_chat(c, row.id, chat_id))
    require_active(row)


async def change_somewhere(
    context: ServiceContext,
    fleet: Fleet,
    workspace_id: str,
    in_rows: Callable[[LogWriter], T],
    in_engine: Callable[[Supervisor, WorkspaceRow], Awaitable[T]],
) -> T:
    """Changes the rows of a workspace that is not active, and asks the engine of one that is.

    `in_rows` runs in the transaction that saw the state. A workspace that stops or starts in
    between is looked at again.

    Raises:
        ApiError: NOT_FOUND, what the two raise, or the engine cannot be reached.
    """

    def run(writer: LogWriter) -> tuple[WorkspaceRow, T | None]:
        row = current(writer.connection, workspace_id)
        active = row.status == WorkspaceStatus.ACTIVE
        return row, None if active else in_rows(writer)

    supervisor = fleet.of(workspace_id)
    for left in reversed(range(ATTEMPTS)):
        await supervisor.stopped()
        row, changed = await context.event_log.write(run)
        if changed is not None:
            return changed
        try:
            return await in_engine(supervisor, row)
        except ApiError as e:
            if not left or not (supervisor.stopping or e.code in _STATE_CHANGED):
                raise
    raise AssertionError("the last attempt returns or raises")


_STATE_CHANGED = (*LOST, ErrorCode.WORKSPACE_NOT_ACTIVE)
