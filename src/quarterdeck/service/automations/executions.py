"""Reading runs."""

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.automations.describing import execution_record
from quarterdeck.service.automations.reach import reach_automation, reach_execution
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.records.executions import page_of_executions
from quarterdeck.wire.automations import Execution, ExecutionList


async def list_executions(
    context: ServiceContext, caller: Caller, automation_id: str, page: int, limit: int
) -> ExecutionList:
    """A page of an automation's runs, newest first.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> tuple[list[Execution], int]:
        automation = reach_automation(connection, caller, automation_id)
        rows, total = page_of_executions(connection, automation["id"], (page - 1) * limit, limit)
        return [execution_record(connection, row) for row in rows], total

    found, total = await context.database.read(run)
    return ExecutionList(
        executions=found, total=total, page=page, limit=limit, total_pages=-(-total // limit)
    )


async def read_execution(
    context: ServiceContext, caller: Caller, automation_id: str, execution_id: str
) -> Execution:
    """One run.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> Execution:
        _, execution = reach_execution(connection, caller, automation_id, execution_id)
        return execution_record(connection, execution)

    return await context.database.read(run)
