"""Changes of a workspace's state: its row and the event that tells it, in one transaction.

| from | by | to |
|---|---|---|
| - | create | preparing |
| preparing | engine ready | active |
| preparing, active | failure | error |
| active | sleep | sleeping |
| active, preparing | another start of the machine | sleeping |
| sleeping | archive, or long asleep | archived |
| sleeping, archived, error | wake (sleeping, archived: also a message) | preparing |
"""

import json
from collections.abc import Sequence
from typing import Any

from quarterdeck.service.errors import ApiError
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.chats import list_chats, rest_chats
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.workspaces import (
    BUSY,
    WorkspaceRow,
    change_workspace,
    count_busy,
    find_workspace,
)
from quarterdeck.service.storable import storable
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EngineStatus, EngineStatusChanged, EventType
from quarterdeck.wire.replicas import WorkspaceStatus

RESTING = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED)


def tell_status(
    writer: LogWriter, workspace_id: str, status: WorkspaceStatus, error: str | None = None
) -> None:
    """Appends the event that tells a state, with the counts that the rows know.

    What only an engine knows, such as how long it runs, is zero: its own event follows.
    """
    row = find_workspace(writer.connection, workspace_id)
    chats = list_chats(writer.connection, workspace_id)
    counts = EngineStatus(
        chats_total=len(chats),
        chats_processing=sum(chat.processing for chat in chats),
        repos_total=len(json.loads(row.repositories_json)) if row else 0,
    )
    told = EngineStatusChanged(status=counts, workspace_status=status.value, error=error)
    payload = told.model_dump(exclude_none=True)
    writer.append(workspace_id, [NewEvent(EventType.ENGINE_STATUS_CHANGED, payload)])


def enter(
    writer: LogWriter,
    workspace_id: str,
    status: WorkspaceStatus,
    only_from: Sequence[WorkspaceStatus],
    error: str | None = None,
    **columns: Any,
) -> bool:
    """Changes the state; False, and nothing changed, when it is not one of `only_from`."""
    row = find_workspace(writer.connection, workspace_id)
    if row is None or row.status not in only_from:
        return False
    error = error and storable(error)
    change_workspace(writer.connection, workspace_id, status=status, error=error, **columns)
    if status not in BUSY:
        rest_chats(writer.connection, workspace_id)
    tell_status(writer, workspace_id, status, error)
    return True


def enter_active(writer: LogWriter, workspace_id: str) -> bool:
    """The engine is ready."""
    return enter(
        writer,
        workspace_id,
        WorkspaceStatus.ACTIVE,
        (WorkspaceStatus.PREPARING,),
        wake_wanted=False,
        warm_pool_id=None,  # its engine knows its owner
    )


def enter_error(writer: LogWriter, workspace_id: str, reason: str) -> bool:
    """Set-up failed, or the engine cannot be kept running."""
    return enter(writer, workspace_id, WorkspaceStatus.ERROR, BUSY, error=reason, wake_wanted=False)


def enter_sleeping(writer: LogWriter, workspace_id: str, now: str) -> bool:
    """The engine has ended, the files are kept."""
    return enter(
        writer, workspace_id, WorkspaceStatus.SLEEPING, BUSY, wake_wanted=False, rested_at=now
    )


def enter_archived(writer: LogWriter, workspace_id: str, now: str) -> bool:
    """The files are in an archive. A workspace that was woken meanwhile is left alone."""
    return enter(
        writer,
        workspace_id,
        WorkspaceStatus.ARCHIVED,
        (WorkspaceStatus.SLEEPING,),
        rested_at=now,
        packed_at=now,
    )


def wake_up(writer: LogWriter, row: WorkspaceRow, limit: int) -> None:
    """From sleeping, archived or error to preparing. `row` was read in the same transaction.

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED.
    """
    check_limit(writer, row.organization_id, row.home_id, limit)
    enter(
        writer,
        row.id,
        WorkspaceStatus.PREPARING,
        (*RESTING, WorkspaceStatus.ERROR),
        wake_wanted=True,
        engine_version=None,
    )


def check_limit(writer: LogWriter, organization_id: str, home_id: str | None, limit: int) -> None:
    """Whether one more workspace may become active in a home.

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED.
    """
    if count_busy(writer.connection, organization_id, home_id) >= limit:
        raise ApiError(
            ErrorCode.WORKSPACE_LIMIT_REACHED,
            f"{limit} replicas are active, which is the most allowed. Put one to sleep first.",
        )
