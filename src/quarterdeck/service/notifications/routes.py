"""Routes of notifications."""

from fastapi import APIRouter

from quarterdeck.service.context import Context
from quarterdeck.service.identity.service import AdminDep, UserDep
from quarterdeck.service.notifications.sender import (
    OutwardDep,
    rotate_webhook_secret,
    webhook_secret,
)
from quarterdeck.service.notifications.targets import connect, connection, disconnect, try_out
from quarterdeck.wire.account import (
    ChatappConnection,
    ConnectChatapp,
    NotificationTried,
    WebhookSecret,
)
from quarterdeck.wire.base import Success

chatapp_router = APIRouter(tags=["chatapp"])

PATH = "/v1/chatapp/user/connection"


@chatapp_router.get(PATH)
async def read_connection(context: Context, caller: UserDep) -> ChatappConnection:
    """Return whether the user's notifications go anywhere."""
    return await connection(context, caller)


@chatapp_router.post(PATH, status_code=201)
async def set_connection(
    body: ConnectChatapp, context: Context, caller: UserDep
) -> ChatappConnection:
    """Set where the user's notifications go: any address of a service that Apprise knows."""
    await connect(context, caller, body.url)
    return await connection(context, caller)


@chatapp_router.delete(PATH)
async def remove_connection(context: Context, caller: UserDep) -> Success:
    """Remove it; also answered when there was none."""
    await disconnect(context, caller)
    return Success()


@chatapp_router.post(f"{PATH}/test")
async def test_connection(
    context: Context, outward: OutwardDep, caller: UserDep
) -> NotificationTried:
    """Send a notification now, and return whether it was delivered."""
    return NotificationTried(delivered=await try_out(context, outward.notifier, caller))


@chatapp_router.get("/v1/organization/webhook-secret")
async def read_secret(context: Context, caller: AdminDep) -> WebhookSecret:
    """Read the text that webhook calls of the organization are signed with."""
    return WebhookSecret(secret=await webhook_secret(context, caller.organization_id))


@chatapp_router.post("/v1/organization/webhook-secret/rotate")
async def rotate_secret(context: Context, caller: AdminDep) -> WebhookSecret:
    """Replace the secret; calls are signed with the new one from now on."""
    return WebhookSecret(secret=await rotate_webhook_secret(context, caller.organization_id))
