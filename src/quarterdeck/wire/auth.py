"""How a user token is obtained (INTERFACE 2; field names and errors of RFC 8628)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Record, Switch

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
"""The one `grant_type` that `POST /v1/auth/token` takes."""

AUTHORIZATION_PENDING = "authorization_pending"
SLOW_DOWN = "slow_down"
EXPIRED_TOKEN = "expired_token"
ACCESS_DENIED = "access_denied"
INVALID_REQUEST = "invalid_request"
INVALID_GRANT = "invalid_grant"
UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"


class DeviceCode(Record):
    """Answer of `POST /v1/auth/device`. `interval` and `expires_in` are in seconds."""

    device_code: str
    user_code: str
    verification_uri: str
    interval: int
    expires_in: int


class TokenRequest(Body):
    """Body of `POST /v1/auth/token`, as JSON or as a form."""

    grant_type: str
    device_code: str
    client_id: str | None = None


class AccessToken(Record):
    """Answer of `POST /v1/auth/token`; `expires_in` is in seconds."""

    access_token: str
    token_type: str = "Bearer"
    expires_in: int


class ApproveDevice(Body):
    """Body of `POST /v1/auth/approve`: lets a device in, or turns it away."""

    user_code: Annotated[str, Field(min_length=1, max_length=32)]
    deny: Switch = False
