"""Removing a workspace for good: the record first, then what it leaves on the disk.

The record's end and a note of the files that are left are one transaction, so a service that is
killed in between finishes at its next start, and nobody ever sees half a workspace.
"""

import logging
from collections.abc import Callable

from sqlalchemy import Connection

from quarterdeck.sandboxes.port import SandboxError
from quarterdeck.service.automations.following import workspace_gone
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.outward.webhooks import store_deleted
from quarterdeck.service.records.removals import end_removal, note_removal, removals_left
from quarterdeck.service.records.workspaces import find_workspace, remove_workspace
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)


async def remove(
    context: ServiceContext, workspace_id: str, only_if: Callable[[Connection], bool] | None = None
) -> bool:
    """Removes the record, ends its streams, destroys its sandbox; False when `only_if` says no.

    Raises:
        ApiError: NOT_FOUND; INTERNAL_ERROR when the sandbox could not be destroyed.
        StorageError: nothing was removed.
    """
    now = moment_text(context.clock())
    if not await context.database.write(
        lambda c: _forget(c, workspace_id, only_if, now, context.home_id)
    ):
        if only_if is not None:
            return False
        raise ApiError(ErrorCode.NOT_FOUND, "No replica has this id.", f"id: {workspace_id}")
    context.event_log.drop(workspace_id)
    context.webhooks_stored()
    if context.checks is not None:
        context.checks.nudge()
    try:
        await _destroy(context, workspace_id)
    except SandboxError as e:
        raise ApiError(
            ErrorCode.INTERNAL_ERROR,
            "The replica is removed, but its files are not: "
            f"{e} This is tried again when the service starts.",
            e.details,
        ) from e
    return True


async def finish_removals(context: ServiceContext) -> None:
    """Destroys the sandboxes that an earlier service of this home had no time for."""
    for workspace_id in await context.database.read(lambda c: removals_left(c, context.home_id)):
        try:
            await _destroy(context, workspace_id)
        except SandboxError as e:
            log.error("The files of %s cannot be removed: %s", workspace_id, e)


async def _destroy(context: ServiceContext, workspace_id: str) -> None:
    await context.sandboxes.destroy(workspace_id)
    await context.database.write(lambda c: end_removal(c, workspace_id))


def _forget(
    connection: Connection,
    workspace_id: str,
    only_if: Callable[[Connection], bool] | None,
    now: str,
    home_id: str,
) -> bool:
    if only_if is not None and not only_if(connection):
        return False
    row = find_workspace(connection, workspace_id)
    if row is None or not remove_workspace(connection, workspace_id):
        return False
    store_deleted(connection, row, now)
    workspace_gone(connection, workspace_id, now)
    note_removal(connection, workspace_id, home_id)
    return True
