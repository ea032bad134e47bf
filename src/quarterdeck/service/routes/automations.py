"""Automations and their runs (specification, operations 17 and 19; INTERFACE 8)."""

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import Response

from quarterdeck.service.auth import Caller, CallerDep
from quarterdeck.service.automations.changes import Changes
from quarterdeck.service.automations.executions import list_executions, read_execution
from quarterdeck.service.automations.managing import (
    change_automation,
    create_automation,
    list_automations,
    read_automation,
    remove_automation,
)
from quarterdeck.service.automations.runner import AutomationRunner
from quarterdeck.service.automations.triggering import retry, trigger_by_hand
from quarterdeck.service.context import Context
from quarterdeck.service.fleet.fleet import FleetDep
from quarterdeck.service.records.automations import AutomationFilter
from quarterdeck.service.routes.events import index_of
from quarterdeck.service.streams import StreamResponse
from quarterdeck.wire.automations import (
    AutomationAnswer,
    AutomationList,
    ChangeAutomation,
    CreateAutomation,
    ExecutionAnswer,
    ExecutionList,
    Retried,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.base import GivenId, GivenWhole, Success
from quarterdeck.wire.triggers import TriggerType

router = APIRouter(prefix="/v1/automations", tags=["automations"])

Page = Annotated[GivenWhole, Query(ge=1, le=1_000_000)]
Limit = Annotated[GivenWhole, Query(ge=1, le=100)]


async def _runner(request: Request) -> AutomationRunner:
    return cast("AutomationRunner", request.app.state.automations)


RunnerDep = Annotated[AutomationRunner, Depends(_runner)]


@router.get("")
async def list_all(
    context: Context,
    caller: CallerDep,
    page: Page = 1,
    limit: Limit = 20,
    trigger_type: TriggerType | None = None,
    enabled: bool | None = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
    scope: Literal["org", "user", "all"] = "all",
) -> AutomationList:
    """A page of the automations that the caller may see, newest first."""
    which = AutomationFilter(
        caller.organization_id, caller.user_id, scope, trigger_type, enabled, search
    )
    return await list_automations(context, which, page, limit)


@router.post("", status_code=201)
async def create(
    body: CreateAutomation, context: Context, caller: CallerDep, runner: RunnerDep
) -> AutomationAnswer:
    """Makes an automation."""
    made = await create_automation(context, caller, body)
    runner.nudge()
    return AutomationAnswer(automation=made)


@router.get("/events", response_class=StreamResponse)
async def follow(
    context: Context,
    caller: CallerDep,
    runner: RunnerDep,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Changes of automations and runs: after `Last-Event-ID`, then live; without it live only."""
    after = index_of(last_event_id)
    newest = await runner.watch.newest()
    return StreamResponse(_changes(runner, caller, after, newest), context.stopping)


@router.get("/{id}")
async def read(id: GivenId, context: Context, caller: CallerDep) -> AutomationAnswer:
    """One automation."""
    return AutomationAnswer(automation=await read_automation(context, caller, str(id)))


@router.patch("/{id}")
async def change(
    id: GivenId, body: ChangeAutomation, context: Context, caller: CallerDep, runner: RunnerDep
) -> AutomationAnswer:
    """Changes what is given."""
    changed = await change_automation(context, caller, str(id), body)
    runner.nudge()
    return AutomationAnswer(automation=changed)


@router.delete("/{id}")
async def remove(id: GivenId, context: Context, caller: CallerDep, runner: RunnerDep) -> Success:
    """Removes an automation with its runs (operation 19)."""
    await remove_automation(context, caller, str(id))
    runner.nudge()
    return Success()


@router.post("/{id}/trigger")
async def trigger(
    id: GivenId,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
    runner: RunnerDep,
    body: TriggerAutomation | None = None,
) -> Triggered:
    """Begins a run by hand, also while it is switched off."""
    asked = body or TriggerAutomation()
    begun = await trigger_by_hand(context, fleet, caller, str(id), asked)
    runner.nudge()
    return begun


@router.get("/{id}/executions")
async def list_runs(
    id: GivenId, context: Context, caller: CallerDep, page: Page = 1, limit: Limit = 20
) -> ExecutionList:
    """A page of an automation's runs, newest first."""
    return await list_executions(context, caller, str(id), page, limit)


@router.get("/{id}/executions/{execution_id}")
async def read_run(
    id: GivenId, execution_id: GivenId, context: Context, caller: CallerDep
) -> ExecutionAnswer:
    """One run."""
    found = await read_execution(context, caller, str(id), str(execution_id))
    return ExecutionAnswer(execution=found)


@router.post("/{id}/executions/{execution_id}/retry")
async def retry_run(
    id: GivenId,
    execution_id: GivenId,
    context: Context,
    fleet: FleetDep,
    caller: CallerDep,
    runner: RunnerDep,
) -> Retried:
    """Runs a failed run again, in a new workspace (operation 17)."""
    begun = await retry(context, fleet, caller, str(id), str(execution_id))
    runner.nudge()
    return begun


def _changes(runner: AutomationRunner, caller: Caller, after: int | None, newest: int) -> Changes:
    place = newest if after is None else min(after, newest)
    return runner.watch.follow(caller.organization_id, caller.user_id, place)
