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

from collections.abc import Sequence
from typing import Any

from quarterdeck.service.errors import ApiError
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.records.chats import rest_chats
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
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus

RESTING = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED)


def status_event(status: WorkspaceStatus, error: str | None = None) -> NewEvent:
    """The event that tells a state."""
    payload = {"workspaceStatus": status.value}
    if error is not None:
        payload["error"] = error
    return NewEvent(EventType.ENGINE_STATUS_CHANGED, payload)


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
    writer.append(workspace_id, [status_event(status, error)])
    return True


def enter_active(writer: LogWriter, workspace_id: str) -> bool:
    """The engine is ready."""
    return enter(
        writer,
        workspace_id,
        WorkspaceStatus.ACTIVE,
        (WorkspaceStatus.PREPARING,),
        wake_wanted=False,
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
    check_limit(writer, row.organization_id, limit)
    enter(
        writer,
        row.id,
        WorkspaceStatus.PREPARING,
        (*RESTING, WorkspaceStatus.ERROR),
        wake_wanted=True,
        engine_version=None,
    )


def check_limit(writer: LogWriter, organization_id: str, limit: int) -> None:
    """Whether one more workspace may become active.

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED.
    """
    if count_busy(writer.connection, organization_id) >= limit:
        raise ApiError(
            ErrorCode.WORKSPACE_LIMIT_REACHED,
            f"{limit} replicas are active, which is the most allowed. Put one to sleep first.",
        )
