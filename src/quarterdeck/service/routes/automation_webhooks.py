"""Webhooks that start automations (INTERFACE 8). Who calls them has no key of the service."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from quarterdeck.service.automations.triggering import take_webhook, too_large
from quarterdeck.service.context import Context
from quarterdeck.service.routes.automations import RunnerDep
from quarterdeck.wire.automations import PAYLOAD_BYTES, Accepted

router = APIRouter(tags=["automations"])


async def payload(request: Request) -> bytes:
    """Dependency: the body as it came, within its limit.

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


@router.post("/v1/automations/webhook/{token}", status_code=202)
async def call(
    token: str,
    body: Payload,
    context: Context,
    runner: RunnerDep,
) -> Accepted:
    """Begins a run with the body as its payload; one that is no JSON becomes `{raw}`."""
    if await take_webhook(context, token, body):
        runner.nudge()
    return Accepted()
