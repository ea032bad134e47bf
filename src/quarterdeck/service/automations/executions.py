"""List, show and stop runs.

Stops the work of runs that were ended while it was running: canceled, timed out, or superseded.

Pending stops are in the rows of the runs, so a service that is killed does them after its restart.
Only the owner of a run's replica stops its work.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.rows import execution_record, skipped_record, skips_between
from quarterdeck.service.automations.run_rows import change_execution, moment_of, page_of_executions
from quarterdeck.service.automations.service import reach_automation, reach_execution
from quarterdeck.service.chats.messages import remove_queued
from quarterdeck.service.chats.rows import WAITING, MessageState, find_chat, last_position, state_of
from quarterdeck.service.chats.service import interrupt_chat
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import retry_until_stored
from quarterdeck.service.db.records import readable
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.wire.automation_runs import Execution, ExecutionList, ExecutionStatus
from quarterdeck.wire.chats import Chat, GoalStatus
from quarterdeck.wire.replicas import WorkspaceStatus


async def list_executions(
    context: ServiceContext, caller: Caller, automation_id: str, page: int, limit: int
) -> ExecutionList:
    """Return a page of an automation's runs, newest first, with the moments that were skipped.

    A page has the skipped moments since its oldest run, up to the oldest run of the page before.

    Raises:
        ApiError: NOT_FOUND.
    """
    before = (page - 1) * limit

    def run(connection: Connection) -> ExecutionList:
        automation = reach_automation(connection, caller, automation_id)
        rows, total = page_of_executions(connection, automation["id"], before, limit)
        until = moment_of(connection, automation["id"], before - 1) if before else None
        since = rows[-1]["triggered_at"] if before + len(rows) < total else None
        covered = before == 0 or bool(rows)
        skips = skips_between(connection, automation["id"], since, until) if covered else []
        return ExecutionList(
            executions=readable(rows, partial(execution_record, connection)),
            skipped=readable(skips, skipped_record),
            total=total,
            page=page,
            limit=limit,
            total_pages=-(-total // limit),
        )

    return await context.database.read(run)


async def read_execution(
    context: ServiceContext, caller: Caller, automation_id: str, execution_id: str
) -> Execution:
    """Return one run.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> Execution:
        _, execution = reach_execution(connection, caller, automation_id, execution_id)
        return execution_record(connection, execution)

    return await context.database.read(run)


AGAIN_AFTER = timedelta(seconds=5)
"""Seconds before a failed stop is tried again."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Work:
    """The replica and chat of a run, the state of its message, and whether it is the only one."""

    workspace: WorkspaceRow
    chat: Chat
    state: MessageState | None
    alone: bool

    @property
    def is_running_turn(self) -> bool:
        """Whether the chat's turn belongs to the run or to its goal."""
        goal = self.chat.goal
        pursued = goal is not None and goal.status == GoalStatus.ACTIVE
        return self.state == MessageState.STARTED or (self.state == MessageState.DONE and pursued)


async def stop_work(context: ServiceContext, fleet: Fleet, run: RowMapping) -> None:
    """Stop the work of a run that has ended, or note when to try again.

    Raises:
        DatabaseClosedError: the service is stopping.
    """
    try:
        done = await _stop(context, fleet, run)
    except ApiError as e:
        log.warning("The work of run %s is not stopped yet: %s", run["id"], e.message)
        done = False
    again = None if done else moment_text(context.clock() + AGAIN_AFTER)
    failed = (ExecutionStatus.FAILED,)
    database = context.database
    await retry_until_stored(
        lambda: database.write(lambda c: change_execution(c, run["id"], failed, stop_due_at=again))
    )


async def _stop(context: ServiceContext, fleet: Fleet, run: RowMapping) -> bool:
    """Cancel the queued message, or interrupt its turn; False when it has to be tried again."""
    chat_id, message_id = UUID(run["chat_id"]), UUID(run["message_id"])
    work = await context.database.read(lambda c: _look(c, run))
    if work is None:
        return True
    row = work.workspace
    if work.state in WAITING:
        await remove_queued(context, fleet, row, chat_id, message_id)
        return await _rest(fleet, row) if work.alone else True
    if work.state == MessageState.CANCELED and work.alone:
        return await _rest(fleet, row)
    if row.status == WorkspaceStatus.ACTIVE and work.is_running_turn:
        await interrupt_chat(context, fleet, row, chat_id)
    return row.status != WorkspaceStatus.PREPARING


async def _rest(fleet: Fleet, row: WorkspaceRow) -> bool:
    """Put a replica to sleep that was created for a message which never ran."""
    if row.status == WorkspaceStatus.ACTIVE:
        return await fleet.of(row.id).sleep()
    return row.status != WorkspaceStatus.PREPARING


def _look(connection: Connection, run: RowMapping) -> _Work | None:
    row = find_workspace(connection, run["workspace_id"])
    chat = row and find_chat(connection, row.id, run["chat_id"])
    if row is None or chat is None:
        return None
    state = state_of(connection, run["chat_id"], run["message_id"])
    return _Work(row, chat, state, last_position(connection, row.id) == 1)
