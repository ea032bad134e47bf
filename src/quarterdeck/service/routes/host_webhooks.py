"""Signed webhooks of the source hosts (INTERFACE 8). Who calls them has no key of the service.

Whoever cannot show the host's secret learns nothing, not even whether there is one.
"""

from typing import Annotated

from fastapi import APIRouter, Header, Request

from quarterdeck.service.context import Context
from quarterdeck.service.description.failures import fails
from quarterdeck.service.errors import ApiError
from quarterdeck.service.hosts.proofs import is_from_host_a, is_from_host_b
from quarterdeck.service.hosts.receiving import take_host_webhook
from quarterdeck.service.hosts.settings import HOST_A, HOST_B
from quarterdeck.service.routes.automation_webhooks import Payload
from quarterdeck.service.routes.automations import RunnerDep
from quarterdeck.wire.automations import Accepted
from quarterdeck.wire.errors import ErrorCode

router = APIRouter(tags=["automations"])


@router.post("/v1/host-a/webhook", status_code=202, responses=fails(401, 409, 413))
async def host_a(
    request: Request,
    body: Payload,
    context: Context,
    runner: RunnerDep,
    x_github_event: Annotated[str, Header()] = "",
) -> Accepted:
    """Takes an event of host A. One that starts nothing is taken too; a repeated one is not."""
    if not is_from_host_a(context.hosts.host_a.webhook_secret, request.headers, body):
        raise _refused()
    await take_host_webhook(context, HOST_A, x_github_event, body)
    runner.nudge()
    return Accepted()


@router.post("/v1/host-b/webhook", status_code=202, responses=fails(401, 409, 413))
async def host_b(
    request: Request,
    body: Payload,
    context: Context,
    runner: RunnerDep,
    x_gitlab_event: Annotated[str, Header()] = "",
) -> Accepted:
    """Takes an event of host B. One that starts nothing is taken too; a repeated one is not."""
    secret = context.hosts.host_b.webhook_secret
    if not is_from_host_b(secret, request.headers, body, context.clock()):
        raise _refused()
    await take_host_webhook(context, HOST_B, x_gitlab_event, body)
    runner.nudge()
    return Accepted()


def _refused() -> ApiError:
    return ApiError(ErrorCode.UNAUTHORIZED, "The webhook is not signed as it must be.")
