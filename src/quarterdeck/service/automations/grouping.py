"""Group, postpone and change the runs of an event.

An event whose automation groups the events of a pull request is routed like this:

| the newest run of the group that has not failed | the event |
|---|---|
| has not started yet | waits until it has |
| has a workspace and has not ended | is the next message there, in its chat |
| has ended, and its workspace is still active | the same |
| has ended, and its workspace is not active, or its service is unreachable | gets its own workspace |
| started with another environment, agent or size | gets its own workspace |
| has a chat that was deleted | gets its own workspace |
"""

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.run_rows import (
    STARTED,
    change_execution,
    earlier_pending,
    newest_of_group,
)
from quarterdeck.service.automations.runs import finish, occasion_of
from quarterdeck.service.chats.rows import find_chat
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.ownership import ALIVE
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.system_rows import find_service, owner_of
from quarterdeck.wire.automation_runs import ExecutionStatus
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

Row = RowMapping

SAME = ("environment_id", "agent_provider", "workspace_size")
"""The settings that must match for a later run to use the workspace."""


@dataclass(frozen=True)
class RunGroup:
    """The runs that a run depends on: one that it waits for, or one whose workspace it joins."""

    before: Row | None = None
    joined: Row | None = None


ALONE = RunGroup()


def company_of(connection: Connection, execution: Row, automation: Row, home_id: str) -> RunGroup:
    """Return the group of a waiting run; `ALONE` when its trigger does not group.

    `home_id` is the home of the calling service.
    """
    group = execution["group_key"]
    if group is None or not occasion_of(execution).joins:
        return ALONE
    before = earlier_pending(connection, execution)
    if before is not None:
        return RunGroup(before=before)
    newest = newest_of_group(connection, automation["id"], group)
    if newest is None or not _fits(connection, newest, automation, home_id):
        return ALONE
    return RunGroup(joined=newest)


def _fits(connection: Connection, run: Row, automation: Row, home_id: str) -> bool:
    kept = json.loads(run["config_json"])
    if any(kept.get(name) != automation[name] for name in SAME):
        return False
    workspace = find_workspace(connection, run["workspace_id"])
    if workspace is None or find_chat(connection, workspace.id, run["chat_id"]) is None:
        return False
    if run["status"] in STARTED:
        return workspace.status != WorkspaceStatus.ERROR
    if workspace.status != WorkspaceStatus.ACTIVE:
        return False
    return _is_attended(connection, workspace.id, home_id)


def _is_attended(connection: Connection, workspace_id: str, home_id: str) -> bool:
    """Return whether the service that owns a workspace is alive: nothing waits for a dead one."""
    owner = owner_of(connection, workspace_id)
    if owner is None or owner.home_id in (None, home_id):
        return True
    service = find_service(connection, owner.home_id, ALIVE)
    return service is not None and service.alive


NO_PLACE_SECONDS = 20
"""Seconds before a run that was over the limit is tried again."""

log = logging.getLogger(__name__)


async def put_off(
    context: ServiceContext, execution_id: str, seconds: float, not_before: str | None = None
) -> None:
    """Postpone a run by some seconds, from now or from a later moment."""
    now = context.clock()
    since = now if not_before is None else max(now, datetime.fromisoformat(not_before))
    due = moment_text(since + timedelta(seconds=seconds))
    waiting = (ExecutionStatus.PENDING,)
    await context.database.write(lambda c: change_execution(c, execution_id, waiting, due_at=due))


async def refuse(context: ServiceContext, execution_id: str, error: ApiError) -> None:
    """Postpone a run that is over the limit; end any other with the reason."""
    now = context.clock()
    again = moment_text(now + timedelta(seconds=NO_PLACE_SECONDS))

    def run(connection: Connection) -> None:
        if error.code in (ErrorCode.WORKSPACE_LIMIT_REACHED, ErrorCode.ENGINE_UNREACHABLE):
            change_execution(connection, execution_id, (ExecutionStatus.PENDING,), due_at=again)
        else:
            why = error.message if error.details is None else f"{error.message} ({error.details})"
            finish(connection, execution_id, why, moment_text(now))

    log.info("A run was not started: %s", error.message)
    await context.database.write(run)
