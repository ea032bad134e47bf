"""How a user token is obtained."""

import asyncio
from collections.abc import Callable
from time import monotonic

from quarterdeck.client.connection import Connection
from quarterdeck.client.errors import (
    InvalidRequest,
    LinkError,
    RateLimited,
    TimedOut,
    Unavailable,
)
from quarterdeck.wire.auth import (
    AUTHORIZATION_PENDING,
    DEVICE_GRANT,
    SLOW_DOWN,
    AccessToken,
    ApproveDevice,
    DeviceCode,
    TokenRequest,
)
from quarterdeck.wire.base import Success

PATH = "/v1/auth"
SLOWER_SECONDS = 5
CLIENT_ID = "qd"


class Auth:
    """`/v1/auth`; only `approve` needs a key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def device(self) -> DeviceCode:
        """Asks for a token. On the owner's own socket it is approved at once."""
        return await self._connection.call("POST", f"{PATH}/device", DeviceCode)

    async def token(self, device_code: str) -> AccessToken:
        """The token, once.

        Raises:
            InvalidRequest: its message is the code of RFC 8628, `authorization_pending` and others.
        """
        body = TokenRequest(grant_type=DEVICE_GRANT, device_code=device_code, client_id=CLIENT_ID)
        return await self._connection.call("POST", f"{PATH}/token", AccessToken, body=body)

    async def approve(self, user_code: str, *, deny: bool = False) -> None:
        """Lets the device with this code in as the owner, or turns it away.

        Raises:
            Forbidden: not on the owner's own socket.
            NotFound: no device waits with this code.
        """
        body = ApproveDevice(user_code=user_code, deny=deny)
        await self._connection.call("POST", f"{PATH}/approve", Success, body=body)

    async def login(self, waiting: Callable[[DeviceCode], None]) -> AccessToken:
        """Asks, and collects the token as soon as somebody approves.

        `waiting` is called once, when a person has to do something with the code.

        Raises:
            InvalidRequest: the owner refused, or nobody approved in time.
            TimedOut: the service could not be reached until the request expired.
        """
        device = await self.device()
        ends, interval, told = monotonic() + device.expires_in, device.interval, False
        while True:
            try:
                return await self.token(device.device_code)
            except InvalidRequest as e:
                if e.message not in (AUTHORIZATION_PENDING, SLOW_DOWN):
                    raise
                interval += SLOWER_SECONDS if e.message == SLOW_DOWN else 0
                if not told:
                    waiting(device)
                    told = True
            except (LinkError, RateLimited, Unavailable) as e:
                # The line may come back before the code expires.
                if monotonic() > ends:
                    raise TimedOut("The request for a token expired.") from e
            await asyncio.sleep(interval)
