"""Resources of a person and of the service itself: keys, sign-in, chat connection, health."""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from time import monotonic
from uuid import UUID

from quarterdeck.client.connection import HttpConnection
from quarterdeck.client.errors import (
    InvalidRequestError,
    LinkError,
    RateLimitedError,
    RequestTimeoutError,
    UnavailableError,
)
from quarterdeck.client.paging import every_record
from quarterdeck.wire.account import (
    AUTHORIZATION_PENDING,
    DEVICE_GRANT,
    SLOW_DOWN,
    AccessToken,
    ApiKey,
    ApiKeyList,
    ApiKeyMade,
    ApproveDevice,
    ChatappConnection,
    ConnectChatapp,
    CreateApiKey,
    DeviceCode,
    Health,
    NotificationTried,
    Organization,
    OrganizationList,
    Service,
    ServiceList,
    TokenRequest,
    User,
    UserProfile,
    WebhookSecret,
)
from quarterdeck.wire.base import Success


class AccountApi:
    """`/v1/user/profile` and `/v1/organizations`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def profile(self) -> User:
        """Return the user of the key or token. Raises `UnauthorizedError` with an organization key."""
        return (await self._connection.call("GET", "/v1/user/profile", UserProfile)).user

    async def organizations(self) -> list[Organization]:
        """Return a token's organizations, with the role in each; a key's only organization."""
        answer = await self._connection.call("GET", "/v1/organizations", OrganizationList)
        return answer.organizations


OWN = "/v1/user/api-keys"
SHARED = "/v1/organization/api-keys"
MOST_PER_PAGE = 100


class KeysApi:
    """`/v1/user/api-keys`, or `/v1/organization/api-keys`, which is for admins."""

    def __init__(self, connection: HttpConnection, path: str = OWN) -> None:
        self._connection = connection
        self._path = path

    async def create(self, name: str) -> ApiKeyMade:
        """Create a key; only this answer contains its text. A user's own needs a user token.

        Raises:
            UnauthorizedError: an API key was used where a user token is needed.
            ForbiddenError: not an admin of the organization.
        """
        body = CreateApiKey(name=name)
        return await self._connection.call("POST", self._path, ApiKeyMade, body=body)

    async def list(self, page: int | None = None, limit: int | None = None) -> ApiKeyList:
        """Return one page (counted from 1, 1 to 100 keys, by default 10), newest first."""
        query = {"page": page, "limit": limit}
        return await self._connection.call("GET", self._path, ApiKeyList, query=query)

    def all(self) -> AsyncGenerator[ApiKey]:
        """Yield every key once, newest first, page by page."""

        async def read(page: int) -> tuple[Sequence[ApiKey], int]:
            answer = await self.list(page, MOST_PER_PAGE)
            return answer.api_keys, answer.total_pages

        return every_record(read)

    async def delete(self, key_id: UUID) -> None:
        """Revoke a key."""
        await self._connection.call("DELETE", f"{self._path}/{key_id}", Success)


class OrganizationKeysApi(KeysApi):
    """`/v1/organization/api-keys`."""

    def __init__(self, connection: HttpConnection) -> None:
        super().__init__(connection, SHARED)


AUTH_PATH = "/v1/auth"
SLOWER_SECONDS = 5
CLIENT_ID = "qd"


class AuthApi:
    """`/v1/auth`; only `approve` needs a key."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def device(self) -> DeviceCode:
        """Request a token. On the owner's own socket it is approved at once."""
        return await self._connection.call("POST", f"{AUTH_PATH}/device", DeviceCode)

    async def token(self, device_code: str) -> AccessToken:
        """Return the token, once.

        Raises:
            InvalidRequestError: its message is the code of RFC 8628, `authorization_pending` and others.
        """
        body = TokenRequest(grant_type=DEVICE_GRANT, device_code=device_code, client_id=CLIENT_ID)
        return await self._connection.call("POST", f"{AUTH_PATH}/token", AccessToken, body=body)

    async def approve(self, user_code: str, *, deny: bool = False) -> None:
        """Sign the device with this code in as the owner, or deny it.

        Raises:
            ForbiddenError: not on the owner's own socket.
            NotFoundError: no device is waiting with this code.
        """
        body = ApproveDevice(user_code=user_code, deny=deny)
        await self._connection.call("POST", f"{AUTH_PATH}/approve", Success, body=body)

    async def login(self, waiting: Callable[[DeviceCode], None]) -> AccessToken:
        """Request a token, and return it as soon as somebody approves.

        `waiting` is called once, when a person has to do something with the code.

        Raises:
            InvalidRequestError: the owner refused, or nobody approved in time.
            RequestTimeoutError: the service could not be reached until the request expired.
        """
        device = await self.device()
        deadline, interval, announced = monotonic() + device.expires_in, device.interval, False
        while True:
            try:
                return await self.token(device.device_code)
            except InvalidRequestError as e:
                if e.message not in (AUTHORIZATION_PENDING, SLOW_DOWN):
                    raise
                interval += SLOWER_SECONDS if e.message == SLOW_DOWN else 0
                if not announced:
                    waiting(device)
                    announced = True
            except (LinkError, RateLimitedError, UnavailableError) as e:
                # The connection may be restored before the code expires.
                if monotonic() > deadline:
                    raise RequestTimeoutError("The request for a token expired.") from e
            await asyncio.sleep(interval)


CHATAPP_PATH = "/v1/chatapp/user/connection"
SECRET = "/v1/organization/webhook-secret"
TRIAL_SECONDS = 40.0


class ChatappApi:
    """`/v1/chatapp/user/connection` and `/v1/organization/webhook-secret`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def get(self) -> ChatappConnection:
        """Return whether the user's notifications have a target."""
        return await self._connection.call("GET", CHATAPP_PATH, ChatappConnection)

    async def connect(self, url: str) -> ChatappConnection:
        """Send them to an address from now on. Raises `InvalidRequestError` when it is not one of a service."""
        body = ConnectChatapp(url=url)
        return await self._connection.call("POST", CHATAPP_PATH, ChatappConnection, body=body)

    async def disconnect(self) -> None:
        """Remove the target of the notifications."""
        await self._connection.call("DELETE", CHATAPP_PATH, Success)

    async def test(self) -> bool:
        """Send one now; return whether it was accepted. Raises `ConflictError` without a target."""
        answer = await self._connection.call(
            "POST", f"{CHATAPP_PATH}/test", NotificationTried, timeout=TRIAL_SECONDS
        )
        return answer.delivered

    async def webhook_secret(self) -> str:
        """Return the secret that signs the organization's webhook calls; admins only."""
        return (await self._connection.call("GET", SECRET, WebhookSecret)).secret

    async def rotate_webhook_secret(self) -> str:
        """Create and return a new one; admins only."""
        return (await self._connection.call("POST", f"{SECRET}/rotate", WebhookSecret)).secret


class HealthApi:
    """`/v1/health`; needs no key."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def get(self, *, timeout: float | None = None) -> Health:
        """Return the service's state and version."""
        return await self._connection.call("GET", "/v1/health", Health, timeout=timeout)


class ServicesApi:
    """`/v1/services`."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def list(self) -> list[Service]:
        """Return all services, including the one that answers."""
        return (await self._connection.call("GET", "/v1/services", ServiceList)).services
