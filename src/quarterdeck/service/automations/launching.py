"""Starts a run that waits: its workspace, chat and message are stored together with its new state.

So a run has one workspace, whoever is killed when, and however many services look for work.
"""

from uuid import UUID

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.automations.joining import ALONE, Company, company_of
from quarterdeck.service.automations.postponing import put_off, refuse
from quarterdeck.service.automations.prompts import compose_prompt
from quarterdeck.service.automations.requests import caller_for, modes_of, replica_for
from quarterdeck.service.automations.runs import mark_creating, mark_running, occasion_of
from quarterdeck.service.checks.opening import Opened, check_for
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.sending import begin_delivery, plan_message, store_message
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.log_writer import LogWriter
from quarterdeck.service.presence import ALIVE
from quarterdeck.service.records.automations import find_automation
from quarterdeck.service.records.executions import find_execution
from quarterdeck.service.records.services import find_service, owner_of
from quarterdeck.service.records.workspaces import find_workspace
from quarterdeck.service.replicas.creating import (
    Made,
    Making,
    begin_replica,
    plan_replica,
    store_replica,
)
from quarterdeck.wire.automations import ExecutionStatus
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.messages import SendMessage
from quarterdeck.wire.replicas import WorkspaceStatus

Row = RowMapping

BEHIND_SECONDS = 1
"""After so long a run that waits for one of its group looks for it again."""
TRIES = 3


class _OverError(Exception):
    """Somebody else has started the run, or it has ended; nothing is kept of this try."""


class _MovedError(Exception):
    """Other runs of the group are no longer as they were; nothing is kept of this try."""


async def launch(context: ServiceContext, fleet: Fleet, execution_id: str) -> str | None:
    """Starts a run if it waits; returns its workspace, None when it has none now.

    A run that cannot be started ends with the reason; one for which there is no place, or whose
    replica is another service's that is away, waits on.

    Raises:
        ApiError: WORKSPACE_LIMIT_REACHED, ENGINE_UNREACHABLE; INVALID_REQUEST and the like, when the run has ended.
    """
    for _ in range(TRIES):
        found = await context.database.read(lambda c: _found(c, execution_id, context.home_id))
        if found is None:
            return None
        try:
            return await _launch(context, fleet, *found)
        except _OverError:
            return None
        except _MovedError:
            continue
        except ApiError as e:
            await refuse(context, execution_id, e)
            raise
    await put_off(context, execution_id, BEHIND_SECONDS)
    return None


async def _is_here(context: ServiceContext, workspace_id: str) -> bool:
    """Whether a run that joins another is this service's to begin; else its owner begins it.

    Raises:
        ApiError: ENGINE_UNREACHABLE: the owner is away, and the run waits for it.
    """

    def look(connection: Connection) -> tuple[bool, bool]:
        owner = owner_of(connection, workspace_id)
        if owner is None or owner.home_id in (None, context.home_id):
            return True, True
        service = find_service(connection, owner.home_id, ALIVE)
        return False, service is not None and service.alive

    here, alive = await context.database.read(look)
    if not alive:
        raise ApiError(
            ErrorCode.ENGINE_UNREACHABLE, "The service that has the run's replica is away."
        )
    return here


async def _launch(
    context: ServiceContext, fleet: Fleet, execution: Row, automation: Row, company: Company
) -> str | None:
    if company.before is not None:
        await put_off(context, execution["id"], BEHIND_SECONDS, company.before["due_at"])
        return None
    if company.beside is not None:
        if not await _is_here(context, company.beside["workspace_id"]):
            return None
        return await _follow_up(context, fleet, execution, automation, company.beside)
    return await _start(context, fleet, execution, automation)


def _found(
    connection: Connection, execution_id: str, home_id: str
) -> tuple[Row, Row, Company] | None:
    """The run, its automation, and the runs that it heeds."""
    execution = find_execution(connection, execution_id)
    if execution is None or execution["status"] != ExecutionStatus.PENDING:
        return None
    automation = find_automation(connection, execution["automation_id"])
    assert automation is not None  # its runs go with it
    return execution, automation, company_of(connection, execution, automation, home_id)


async def _start(
    context: ServiceContext, fleet: Fleet, execution: Row, automation: Row
) -> str | None:
    text, opened = await _prompt(context, execution, automation)
    body = replica_for(automation, text)
    making = await plan_replica(context, fleet, caller_for(automation), body, source="automation")

    def store(writer: LogWriter) -> Made:
        if company_of(writer.connection, execution, automation, context.home_id) != ALONE:
            raise _MovedError
        return _store(writer, making, (execution["id"], automation), opened)

    try:
        made = await context.event_log.write(store)
    except IntegrityError as e:
        raise ApiError(ErrorCode.CONFLICT, f"There is a replica {body.name} already.") from e
    begin_replica(fleet, made)
    return made.workspace_id


async def _prompt(
    context: ServiceContext, execution: Row, automation: Row
) -> tuple[str, Opened | None]:
    """The run's message, and the check whose ticket is in it."""
    occasion = occasion_of(execution)
    opened = await check_for(context, execution, automation, occasion)
    if opened is None:
        return compose_prompt(automation["prompt"], occasion), None
    return compose_prompt(automation["prompt"], opened.occasion, opened.ticket), opened


def _store(writer: LogWriter, making: Making, run: tuple[str, Row], opened: Opened | None) -> Made:
    made = store_replica(writer, making)
    assert made.message_id is not None  # the prompt is never empty
    place = (made.workspace_id, made.chat_id, made.message_id)
    if opened is not None:
        opened.store(writer.connection)
    if not mark_creating(writer.connection, *run, place, making.now):
        raise _OverError
    return made


async def _follow_up(
    context: ServiceContext, fleet: Fleet, execution: Row, automation: Row, running: Row
) -> str | None:
    """The run joins another in its workspace, as the next message of its chat."""
    workspace_id = running["workspace_id"]
    text, opened = await _prompt(context, execution, automation)
    body = SendMessage(message=text, chat_id=UUID(running["chat_id"]), **modes_of(automation))
    sending = plan_message(context, fleet, caller_for(automation), workspace_id, body)

    def store(writer: LogWriter) -> None:
        connection = writer.connection
        beside = company_of(connection, execution, automation, context.home_id).beside
        if beside is None or beside["id"] != running["id"]:
            raise _MovedError
        accepted = store_message(writer, sending)
        place = (workspace_id, str(accepted.chat_id), str(accepted.message_id))
        if opened is not None:
            opened.store(connection)
        if not mark_creating(connection, execution["id"], automation, place, sending.now):
            raise _OverError
        row = find_workspace(connection, workspace_id)
        if row is not None and row.status == WorkspaceStatus.ACTIVE:
            mark_running(connection, execution["id"], sending.now)

    await context.event_log.write(store)
    begin_delivery(fleet, workspace_id)
    return workspace_id
