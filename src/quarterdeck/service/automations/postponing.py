"""Runs that cannot be started now: put off, or ended with the reason."""

import logging
from datetime import datetime, timedelta

from sqlalchemy import Connection

from quarterdeck.service.automations.runs import finish
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.executions import change_execution
from quarterdeck.wire.automations import ExecutionStatus
from quarterdeck.wire.errors import ErrorCode

NO_PLACE_SECONDS = 20
"""After so long a run for which there was no place is tried again."""

log = logging.getLogger(__name__)


async def put_off(
    context: ServiceContext, execution_id: str, seconds: float, not_before: str | None = None
) -> None:
    """Lets a run wait, for so long from now or from a later moment."""
    now = context.clock()
    since = now if not_before is None else max(now, datetime.fromisoformat(not_before))
    due = moment_text(since + timedelta(seconds=seconds))
    waiting = (ExecutionStatus.PENDING,)
    await context.database.write(lambda c: change_execution(c, execution_id, waiting, due_at=due))


async def refuse(context: ServiceContext, execution_id: str, error: ApiError) -> None:
    """Puts a run off for which there is no place; ends another with the reason."""
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
