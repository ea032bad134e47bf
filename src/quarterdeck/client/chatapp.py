"""Where notifications go, and what webhooks are signed with."""

from quarterdeck.client.connection import Connection
from quarterdeck.wire.base import Success
from quarterdeck.wire.chatapp import (
    ChatappConnection,
    ConnectChatapp,
    NotificationTried,
    WebhookSecret,
)

PATH = "/v1/chatapp/user/connection"
TRIAL_SECONDS = 40.0


class Chatapp:
    """`/v1/chatapp/user/connection` and `/v1/organization/webhook-secret`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self) -> ChatappConnection:
        """Whether the user's notifications go anywhere."""
        return await self._connection.call("GET", PATH, ChatappConnection)

    async def connect(self, url: str) -> None:
        """Sends them to an address from now on. Raises `InvalidRequest` when it names no service."""
        await self._connection.call("POST", PATH, Success, body=ConnectChatapp(url=url))

    async def disconnect(self) -> None:
        """Sends them nowhere."""
        await self._connection.call("DELETE", PATH, Success)

    async def test(self) -> bool:
        """Sends one now; whether it was taken. Raises `Conflict` without a target."""
        answer = await self._connection.call(
            "POST", f"{PATH}/test", NotificationTried, timeout=TRIAL_SECONDS
        )
        return answer.success

    async def webhook_secret(self) -> str:
        """The text with which the organization's webhook calls are signed; admins only."""
        answer = await self._connection.call(
            "GET", "/v1/organization/webhook-secret", WebhookSecret
        )
        return answer.secret
