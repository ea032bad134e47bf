"""Routes of automations, their webhooks and checks.

Signed webhooks of the source hosts (INTERFACE 8). Who calls them has no key of the service.

A caller without the host's secret learns nothing, not even whether there is one.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from quarterdeck.service.automations.changes import Changes
from quarterdeck.service.automations.dispatch import (
    approve,
    cancel,
    retry,
    take_host_webhook,
    take_webhook,
    too_large,
    trigger_by_hand,
)
from quarterdeck.service.automations.executions import list_executions, read_execution
from quarterdeck.service.automations.launcher import LauncherDep
from quarterdeck.service.automations.rows import AutomationFilter
from quarterdeck.service.automations.runner import AutomationRunner
from quarterdeck.service.automations.service import (
    automation_tag,
    change_automation,
    create_automation,
    list_automations,
    read_automation,
    remove_automation,
    rotate_webhook,
)
from quarterdeck.service.checks.service import report_check
from quarterdeck.service.context import Context, parts
from quarterdeck.service.description import fails, stream_of
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import IfMatch
from quarterdeck.service.hosts.api import HostApis
from quarterdeck.service.hosts.settings import HOST_A, HOST_B
from quarterdeck.service.hosts.webhooks import delivery_id, is_from_host_a, is_from_host_b
from quarterdeck.service.identity.service import Caller, CallerDep
from quarterdeck.service.replicas.routes import index_of
from quarterdeck.service.routing import admits
from quarterdeck.service.streams import StreamResponse
from quarterdeck.wire.automation_runs import (
    Accepted,
    CheckReported,
    ExecutionAnswer,
    ExecutionList,
    ReportCheck,
    Retried,
    TriggerAutomation,
    Triggered,
)
from quarterdeck.wire.automations import (
    PAYLOAD_BYTES,
    Automation,
    AutomationAnswer,
    AutomationList,
    ChangeAutomation,
    CreateAutomation,
)
from quarterdeck.wire.base import DIGITS, GivenId, Success
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.triggers import TriggerType

automations_router = APIRouter(prefix="/v1/automations", tags=["automations"])

Page = Annotated[int, Query(ge=1, le=1_000_000), DIGITS]
Limit = Annotated[int, Query(ge=1, le=100), DIGITS]


async def _runner(request: Request) -> AutomationRunner:
    return parts(request).automations


async def _host_apis(request: Request) -> HostApis:
    return parts(request).host_apis


RunnerDep = Annotated[AutomationRunner, Depends(_runner)]
HostApisDep = Annotated[HostApis, Depends(_host_apis)]


@automations_router.get("")
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
    """Return a page of the automations that the caller may see, newest first."""
    filter = AutomationFilter(
        caller.organization_id, caller.user_id, scope, trigger_type, enabled, search
    )
    return await list_automations(context, filter, page, limit)


@automations_router.post("", status_code=201, responses=fails(403))
async def create(
    body: CreateAutomation,
    context: Context,
    caller: CallerDep,
    runner: RunnerDep,
    response: Response,
) -> AutomationAnswer:
    """Create an automation."""
    automation = await create_automation(context, caller, body)
    runner.nudge()
    return _tagged(response, automation)


@automations_router.get(
    "/events", response_class=StreamResponse, responses=stream_of("AutomationEvent")
)
async def follow(
    context: Context,
    caller: CallerDep,
    runner: RunnerDep,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Return changes of automations and runs: after `Last-Event-ID`, then live; without it live only."""
    after = index_of(last_event_id)
    newest = await runner.watch.newest()
    return StreamResponse(_changes(runner, caller, after, newest), context.stopping)


@automations_router.get("/{id}")
async def read(
    id: GivenId, context: Context, caller: CallerDep, response: Response
) -> AutomationAnswer:
    """Read an automation."""
    return _tagged(response, await read_automation(context, caller, str(id)))


@automations_router.patch("/{id}", responses=fails(403, 412))
async def change(
    id: GivenId,
    body: ChangeAutomation,
    context: Context,
    caller: CallerDep,
    runner: RunnerDep,
    response: Response,
    if_match: IfMatch = None,
) -> AutomationAnswer:
    """Change the given fields of an automation."""
    changed = await change_automation(context, caller, str(id), body, if_match)
    runner.nudge()
    return _tagged(response, changed)


def _tagged(response: Response, automation: Automation) -> AutomationAnswer:
    response.headers["ETag"] = automation_tag(automation)
    return AutomationAnswer(automation=automation)


@automations_router.delete("/{id}", responses=fails(403))
async def remove(id: GivenId, context: Context, caller: CallerDep, runner: RunnerDep) -> Success:
    """Remove an automation with its runs (operation 19)."""
    await remove_automation(context, caller, str(id))
    runner.nudge()
    return Success()


@automations_router.post("/{id}/trigger")
async def trigger(
    id: GivenId,
    context: Context,
    launcher: LauncherDep,
    caller: CallerDep,
    runner: RunnerDep,
    body: TriggerAutomation | None = None,
) -> Triggered:
    """Begin a run by hand, also while it is switched off."""
    request = body or TriggerAutomation()
    triggered = await trigger_by_hand(context, launcher, caller, str(id), request)
    runner.nudge()
    return triggered


@automations_router.get("/{id}/executions")
async def list_runs(
    id: GivenId, context: Context, caller: CallerDep, page: Page = 1, limit: Limit = 20
) -> ExecutionList:
    """Return a page of an automation's runs, newest first."""
    return await list_executions(context, caller, str(id), page, limit)


@automations_router.get("/{id}/executions/{execution_id}")
async def read_run(
    id: GivenId, execution_id: GivenId, context: Context, caller: CallerDep
) -> ExecutionAnswer:
    """Return one run."""
    execution = await read_execution(context, caller, str(id), str(execution_id))
    return ExecutionAnswer(execution=execution)


@automations_router.post("/{id}/executions/{execution_id}/retry")
async def retry_run(
    id: GivenId,
    execution_id: GivenId,
    context: Context,
    launcher: LauncherDep,
    caller: CallerDep,
    runner: RunnerDep,
) -> Retried:
    """Run a failed run again, in a new workspace (operation 17)."""
    retried = await retry(context, launcher, caller, str(id), str(execution_id))
    runner.nudge()
    return retried


@automations_router.post("/{id}/executions/{execution_id}/approve")
async def approve_run(
    id: GivenId,
    execution_id: GivenId,
    context: Context,
    launcher: LauncherDep,
    caller: CallerDep,
    runner: RunnerDep,
) -> ExecutionAnswer:
    """Let a run start that waits for approval, with the variables of its environment."""
    execution = await approve(context, launcher, caller, str(id), str(execution_id))
    runner.nudge()
    return ExecutionAnswer(execution=execution)


@automations_router.post("/{id}/executions/{execution_id}/cancel", responses=fails(409))
async def cancel_run(
    id: GivenId, execution_id: GivenId, context: Context, caller: CallerDep, runner: RunnerDep
) -> ExecutionAnswer:
    """End a run that has not ended; it is failed, with the reason `canceled`."""
    execution = await cancel(context, caller, str(id), str(execution_id))
    runner.nudge()
    return ExecutionAnswer(execution=execution)


@automations_router.post("/{id}/webhook/rotate", responses=fails(403, 409))
async def rotate(
    id: GivenId, context: Context, caller: CallerDep, runner: RunnerDep, response: Response
) -> AutomationAnswer:
    """Replace the token of the automation's webhook; the previous one stops working immediately."""
    changed = await rotate_webhook(context, caller, str(id))
    runner.nudge()
    return _tagged(response, changed)


def _changes(runner: AutomationRunner, caller: Caller, after: int | None, newest: int) -> Changes:
    place = newest if after is None else min(after, newest)
    return runner.watch.follow(caller.organization_id, caller.user_id, place)


automation_checks_router = APIRouter(tags=["automations"])

ID_LENGTH = 100


@automation_checks_router.post("/v1/automations/checks/{check_run_id}", responses=fails(403))
@admits(keys=False, tokens=False, engines=True)
async def report(
    check_run_id: Annotated[str, Path(max_length=ID_LENGTH)],
    body: ReportCheck,
    context: Context,
    caller: CallerDep,
) -> CheckReported:
    """Report the verdict of the calling workspace's run; false when a later run has replaced it."""
    return await report_check(context, caller, check_run_id, body)


automation_webhooks_router = APIRouter(tags=["automations"])


async def payload(request: Request) -> bytes:
    """Dependency: the raw body, within its limit.

    Raises:
        ApiError: PAYLOAD_TOO_LARGE, before all of it is read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > PAYLOAD_BYTES:
            raise too_large()
    return bytes(body)


Payload = Annotated[bytes, Depends(payload)]


@automation_webhooks_router.post(
    "/v1/automations/webhook/{token}", status_code=202, responses=fails(413)
)
@admits(public=True)
async def call(
    token: str,
    body: Payload,
    context: Context,
    runner: RunnerDep,
    x_signature_256: Annotated[str, Header()] = "",
) -> Accepted:
    """Start a run with the body as its payload; one that is not JSON becomes `{raw}`.

    An automation with a secret accepts only calls that are signed with it. Any other call is answered
    as one of an unknown webhook.
    """
    if await take_webhook(context, token, body, x_signature_256):
        runner.nudge()
    return Accepted()


host_webhooks_router = APIRouter(tags=["automations"])


@host_webhooks_router.post("/v1/host-a/webhook", status_code=202, responses=fails(401, 409, 413))
@admits(public=True)
async def host_a(
    request: Request,
    body: Payload,
    context: Context,
    apis: HostApisDep,
    runner: RunnerDep,
    x_github_event: Annotated[str, Header()] = "",
) -> Accepted:
    """Receive an event of host A. An event without a match is accepted too; a repeated one is not."""
    if not is_from_host_a(context.hosts.host_a.webhook_secret, request.headers, body):
        raise _refused()
    checks = parts(request).checks
    await take_host_webhook(context, apis, checks, HOST_A, x_github_event, body)
    runner.nudge()
    return Accepted()


@host_webhooks_router.post("/v1/host-b/webhook", status_code=202, responses=fails(401, 409, 413))
@admits(public=True)
async def host_b(
    request: Request,
    body: Payload,
    context: Context,
    apis: HostApisDep,
    runner: RunnerDep,
    x_gitlab_event: Annotated[str, Header()] = "",
) -> Accepted:
    """Receive an event of host B. An event without a match is accepted too; a repeated one is not."""
    secret = context.hosts.host_b.webhook_secret
    if not is_from_host_b(secret, request.headers, body, context.clock()):
        raise _refused()
    checks, delivery = parts(request).checks, delivery_id(request.headers)
    await take_host_webhook(context, apis, checks, HOST_B, x_gitlab_event, body, delivery)
    runner.nudge()
    return Accepted()


def _refused() -> ApiError:
    return ApiError(ErrorCode.UNAUTHORIZED, "Bad webhook signature.")
