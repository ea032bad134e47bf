"""Notifications of a person, and the secret of webhooks (operation 23; INTERFACE 9)."""

from fastapi import APIRouter

from quarterdeck.service.auth import AdminDep, UserDep
from quarterdeck.service.context import Context
from quarterdeck.service.outward.connecting import connect, connection, disconnect, try_out
from quarterdeck.service.outward.outward import OutwardDep
from quarterdeck.service.outward.signature import webhook_secret
from quarterdeck.wire.base import Success
from quarterdeck.wire.chatapp import (
    ChatappConnection,
    ConnectChatapp,
    NotificationTried,
    WebhookSecret,
)

router = APIRouter(tags=["chatapp"])

PATH = "/v1/chatapp/user/connection"


@router.get(PATH)
async def read_connection(context: Context, caller: UserDep) -> ChatappConnection:
    """Whether the user's notifications go anywhere."""
    return await connection(context, caller)


@router.post(PATH)
async def set_connection(body: ConnectChatapp, context: Context, caller: UserDep) -> Success:
    """Stores where they go."""
    await connect(context, caller, body.url)
    return Success()


@router.delete(PATH)
async def remove_connection(context: Context, caller: UserDep) -> Success:
    """Removes it; also answered when there was none."""
    await disconnect(context, caller)
    return Success()


@router.post(f"{PATH}/test")
async def test_connection(
    context: Context, outward: OutwardDep, caller: UserDep
) -> NotificationTried:
    """Sends a notification now."""
    return NotificationTried(success=await try_out(context, outward.notifier, caller))


@router.get("/v1/organization/webhook-secret")
async def read_webhook_secret(context: Context, caller: AdminDep) -> WebhookSecret:
    """What webhook calls of the organization are signed with."""
    return WebhookSecret(secret=webhook_secret(context.vault, caller.organization_id))
