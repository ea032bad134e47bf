"""Verdicts of agents, from within their workspaces (specification, operation 12)."""

from hmac import compare_digest

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.auth import Caller
from quarterdeck.service.automations.runs import tell_run
from quarterdeck.service.checks.states import report
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.keys import hash_of
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.checks import checks_named
from quarterdeck.service.records.executions import find_execution
from quarterdeck.wire.automations import CheckReported, ReportCheck
from quarterdeck.wire.errors import ErrorCode


async def report_check(
    context: ServiceContext, caller: Caller, check_run_id: str, body: ReportCheck
) -> CheckReported:
    """Keeps a verdict of the calling workspace's run; whose it is, is looked at in the same write.

    Raises:
        ApiError: NOT_FOUND; FORBIDDEN for another workspace's check, and for another token.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> CheckReported:
        row = _owned(connection, caller, check_run_id, body.token)
        reported = report(connection, row, body, now)
        if reported:
            tell_run(connection, row["execution_id"], now)
        return CheckReported(reported=reported, name=row["name"])

    answer = await context.database.write(run)
    if context.checks is not None:
        context.checks.nudge()
    return answer


def _owned(connection: Connection, caller: Caller, check_run_id: str, token: str) -> RowMapping:
    rows = checks_named(connection, caller.organization_id, check_run_id)
    if not rows:
        raise ApiError(ErrorCode.NOT_FOUND, "No check has this id.", f"id: {check_run_id}")
    for row in rows:
        execution = find_execution(connection, row["execution_id"])
        own = execution is not None and execution["workspace_id"] == caller.workspace_id
        if own and compare_digest(row["token_hash"], hash_of(token)):
            return row
    raise ApiError(
        ErrorCode.FORBIDDEN, "This check belongs to another run, or the token is not its own."
    )
