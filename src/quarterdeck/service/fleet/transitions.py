"""Transitions between the states of a replica.

Changes of a workspace's state: its row and the event of it, in one transaction.

| from | by | to |
|---|---|---|
| - | create | preparing |
| preparing | engine ready | active |
| preparing, active | failure | error |
| active | sleep | sleeping |
| active, preparing | another start of the machine | sleeping |
| sleeping | archive, or long asleep | archived |
| sleeping, archived, error | wake (sleeping, archived: also a message) | preparing |

Removing a workspace permanently: the record first, then its files.

The removal of the record and a note of the remaining files are one transaction, so a service that
is killed in between finishes at its next start, and nobody ever sees half a workspace.
"""

import json
import logging
from collections.abc import Callable, Container, Sequence
from typing import Any

from sqlalchemy import Connection

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.automations.changes import store_change
from quarterdeck.service.automations.run_follower import end_runs_of_workspace
from quarterdeck.service.chats.rows import list_chats, rest_chats
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.database import give_back
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.errors import ApiError, StorageError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent, remove_oldest
from quarterdeck.service.formats import moment_text, storable
from quarterdeck.service.notifications.rows import store_deleted
from quarterdeck.service.ownership import unreachable_since
from quarterdeck.service.replicas.rows import (
    BUSY,
    WorkspaceRow,
    change_workspace,
    count_busy,
    end_removal,
    find_workspace,
    note_removal,
    removals_left,
    remove_workspace,
)
from quarterdeck.service.system_rows import drop_service
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import (
    AutomationEventType,
    EngineStatus,
    EngineStatusChanged,
    EventType,
)
from quarterdeck.wire.replicas import WorkspaceStatus

RESTING = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ARCHIVED)
TOLD = (WorkspaceStatus.PREPARING, WorkspaceStatus.ARCHIVED)
"""Also told in the stream of changes: a client may not follow this replica's own events then."""


def append_status_event(
    writer: LogWriter, workspace_id: str, status: WorkspaceStatus, error: str | None = None
) -> None:
    """Append the event of a state, with the counts from the rows.

    Values that only an engine has, such as its uptime, are zero: its own event follows.
    """
    row = find_workspace(writer.connection, workspace_id)
    chats = list_chats(writer.connection, workspace_id)
    counts = EngineStatus(
        chats_total=len(chats),
        chats_processing=sum(chat.processing for chat in chats),
        repos_total=len(json.loads(row.repositories_json)) if row else 0,
    )
    changed = EngineStatusChanged(status=counts, workspace_status=status.value, error=error)
    payload = changed.model_dump(exclude_none=True)
    writer.append(workspace_id, [NewEvent(EventType.ENGINE_STATUS_CHANGED, payload)])
    if row is not None and status in TOLD:
        _store_for_lists(writer.connection, row, status, moment_text(writer.now()))


def _store_for_lists(
    connection: Connection, row: WorkspaceRow, status: WorkspaceStatus | None, now: str
) -> None:
    """Store a change for clients that show the list of replicas; without a status it was deleted."""
    if row.warm_state is None:  # the others are in no list
        payload = {"replica_id": row.id, "status": status}
        owner = (row.organization_id, None)
        store_change(connection, owner, AutomationEventType.REPLICA_CHANGED, payload, now)


def enter(
    writer: LogWriter,
    workspace_id: str,
    status: WorkspaceStatus,
    only_from: Sequence[WorkspaceStatus],
    error: str | None = None,
    **columns: Any,
) -> bool:
    """Change the state; False, and nothing changed, when it is not one of `only_from`."""
    row = find_workspace(writer.connection, workspace_id)
    if row is None or row.status not in only_from:
        return False
    error = error and storable(error)
    change_workspace(writer.connection, workspace_id, status=status, error=error, **columns)
    if status not in BUSY:
        rest_chats(writer.connection, workspace_id)
    append_status_event(writer, workspace_id, status, error)
    return True


def enter_active(writer: LogWriter, workspace_id: str) -> bool:
    """Mark a workspace as active: its engine is ready."""
    return enter(
        writer,
        workspace_id,
        WorkspaceStatus.ACTIVE,
        (WorkspaceStatus.PREPARING,),
        wake_wanted=False,
        warm_pool_id=None,  # its engine knows its owner
    )


def enter_error(writer: LogWriter, workspace_id: str, reason: str) -> bool:
    """Mark a workspace as failed: set-up failed, or the engine cannot be kept running."""
    return enter(writer, workspace_id, WorkspaceStatus.ERROR, BUSY, error=reason, wake_wanted=False)


def enter_sleeping(writer: LogWriter, workspace_id: str, now: str) -> bool:
    """Mark a workspace as sleeping: the engine has ended, the files are kept."""
    return enter(
        writer, workspace_id, WorkspaceStatus.SLEEPING, BUSY, wake_wanted=False, rested_at=now
    )


def note_packing(connection: Connection, workspace_id: str, home_id: str, now: str) -> bool:
    """Note that a sleeping workspace's volume is about to be replaced by an archive in its home.

    From then on no other service takes it over. False when it sleeps no more, or another has it.
    """
    row = find_workspace(connection, workspace_id)
    if row is None or not row.is_of(home_id) or row.status != WorkspaceStatus.SLEEPING:
        return False
    change_workspace(connection, workspace_id, packed_at=now)
    return True


def enter_archived(writer: LogWriter, workspace_id: str, now: str) -> bool:
    """Mark a workspace as archived, its files packed, unless it was woken in the meantime."""
    return enter(
        writer,
        workspace_id,
        WorkspaceStatus.ARCHIVED,
        (WorkspaceStatus.SLEEPING,),
        rested_at=now,
        packed_at=now,
    )


def wake_up(writer: LogWriter, row: WorkspaceRow, limit: int) -> None:
    """Move from sleeping, archived or error to preparing. `row` is of the same transaction.

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
    """Check that one more workspace of an organization may become active (`[service] max_active`).

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED.
    """
    if count_busy(writer.connection, organization_id) >= limit:
        raise ApiError(
            ErrorCode.WORKSPACE_LIMIT_REACHED,
            f"{limit} replicas are active, which is the most allowed. Put one to sleep first.",
        )


log = logging.getLogger(__name__)


async def remove(
    context: ServiceContext, workspace_id: str, only_if: Callable[[Connection], bool] | None = None
) -> bool:
    """Remove the record, end its streams, destroy its sandbox; False when `only_if` says no.

    `only_if` is asked before each part of a long history: a replica that is used meanwhile stays, with less of it.

    Raises:
        ApiError: NOT_FOUND; INTERNAL_ERROR when the sandbox could not be destroyed.
        StorageError: the replica is still there, perhaps with less history.
    """
    now = moment_text(context.clock())
    long = await _remove_long_history(context, workspace_id, only_if)

    def run(connection: Connection) -> WorkspaceRow | None:
        if only_if is not None and not only_if(connection):
            return None
        row = find_workspace(connection, workspace_id)
        if row is None or not row.is_of(context.home_id):
            return None
        return row if _remove_record(connection, row, context.home_id, now) else None

    row = await context.database.write(run)
    if row is None:
        if only_if is not None:
            return False
        raise _not_found(workspace_id)
    _removed(context, workspace_id)
    try:
        await _destroy(context, workspace_id, row.driver)
    except SandboxError as e:
        raise ApiError(
            ErrorCode.INTERNAL_ERROR,
            "The replica is removed, but its files are not: "
            f"{e} This is tried again when the service starts.",
            e.details,
        ) from e
    finally:
        if long:
            await _give_back(context)
    return True


async def _give_back(context: ServiceContext) -> None:
    try:
        while await context.database.write(give_back):
            pass
    except StorageError as e:  # later rows use the pages
        log_storage_error(log, "The database keeps its size", e)


async def _remove_long_history(
    context: ServiceContext, workspace_id: str, only_if: Callable[[Connection], bool] | None
) -> bool:
    """Remove all but the end of a long history in parts, and return whether the history was long.

    The rest is removed with the record. If this is interrupted, the replica is still there, with less history.
    """

    def run(connection: Connection) -> bool:
        if only_if is not None and not only_if(connection):
            return False
        row = find_workspace(connection, workspace_id)
        return bool(row and row.is_of(context.home_id)) and remove_oldest(connection, workspace_id)

    found = False
    while await context.database.write(run):
        found = True
    return found


async def forget(context: ServiceContext, workspace_id: str) -> None:
    """Remove the record of a workspace whose home is lost, and end its streams here.

    With its last replica the home is no longer listed among the services. If it comes back, it
    removes the files.

    Raises:
        ApiError: NOT_FOUND; CONFLICT while its home answers.
        StorageError: nothing was removed.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> None:
        row = find_workspace(connection, workspace_id)
        if row is None:
            raise _not_found(workspace_id)
        if not unreachable_since(connection, context.home_id, [row]):
            raise ApiError(
                ErrorCode.CONFLICT,
                "The service that has this replica answers. Delete the replica instead.",
                f"home {row.home_id}",
            )
        _remove_record(connection, row, str(row.home_id), now)
        drop_service(connection, str(row.home_id))

    await context.database.write(run)
    _removed(context, workspace_id)


async def finish_removals(context: ServiceContext, without: Container[str]) -> None:
    """Destroy the sandboxes that an earlier service of this home had no time for.

    Args:
        without: drivers that cannot do so now.
    """
    left = await context.database.read(lambda c: removals_left(c, context.home_id))
    for workspace_id, driver in left:
        if driver in without:
            continue
        try:
            await _destroy(context, workspace_id, driver)
        except SandboxError as e:
            log.error("The files of %s cannot be removed: %s", workspace_id, e)


async def _destroy(context: ServiceContext, workspace_id: str, driver: str) -> None:
    await context.drivers.named(driver).destroy(workspace_id)
    await context.database.write(lambda c: end_removal(c, workspace_id))


def _remove_record(connection: Connection, row: WorkspaceRow, home_id: str, now: str) -> bool:
    """Remove a workspace's rows and note the files that a home has of it."""
    if not remove_workspace(connection, row.id):
        return False
    store_deleted(connection, row, now)
    _store_for_lists(connection, row, None, now)
    end_runs_of_workspace(connection, row.id, now)
    note_removal(connection, row, home_id)
    return True


def _removed(context: ServiceContext, workspace_id: str) -> None:
    """Note that the record's end was committed."""
    context.event_log.drop(workspace_id)
    context.webhooks_stored.set()
    context.checks_changed.set()
    context.changes.nudge()


def _not_found(workspace_id: str) -> ApiError:
    return ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {workspace_id}")
