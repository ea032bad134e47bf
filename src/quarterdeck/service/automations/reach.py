"""Which automations a caller reaches: shared ones as every member, personal ones as their user."""

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.auth import Caller
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.automations import find_automation
from quarterdeck.service.records.executions import find_execution
from quarterdeck.wire.errors import ErrorCode

Row = RowMapping


def reach_automation(connection: Connection, caller: Caller, automation_id: str) -> Row:
    """The row of an automation.

    Raises:
        ApiError: NOT_FOUND when there is none, or it is somebody else's.
    """
    row = find_automation(connection, automation_id)
    mine = row is not None and row["organization_id"] == caller.organization_id
    if row is None or not mine or row["user_id"] not in (None, caller.user_id):
        raise ApiError(ErrorCode.NOT_FOUND, "No automation has this id.", f"id: {automation_id}")
    return row


def reach_execution(
    connection: Connection, caller: Caller, automation_id: str, execution_id: str
) -> tuple[Row, Row]:
    """The rows of an automation and of one of its runs.

    Raises:
        ApiError: NOT_FOUND.
    """
    automation = reach_automation(connection, caller, automation_id)
    execution = find_execution(connection, execution_id)
    if execution is None or execution["automation_id"] != automation["id"]:
        raise ApiError(
            ErrorCode.NOT_FOUND, "The automation has no run with this id.", f"id: {execution_id}"
        )
    return automation, execution
