"""People, their keys and sign-in, and the services of an installation."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from quarterdeck.wire.base import Body, Id, Record, Switch, Timestamp

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
    """Code for `POST /v1/auth/token`; keep it secret."""
    user_code: str
    """Code that the person enters to approve."""
    verification_uri: str
    """Page that explains how to approve."""
    interval: int
    """Shortest time between two requests for the token, in seconds."""
    expires_in: int
    """Time until the codes expire, in seconds."""


class TokenRequest(Body):
    """Body of `POST /v1/auth/token`, as JSON or as a form."""

    grant_type: str
    """`urn:ietf:params:oauth:grant-type:device_code`."""
    device_code: str
    """Code from `POST /v1/auth/device`."""
    client_id: str | None = None
    """Accepted and ignored."""


class AccessToken(Record):
    """Answer of `POST /v1/auth/token`; `expires_in` is in seconds."""

    access_token: str
    """User token, to send as a bearer token."""
    token_type: str = "Bearer"
    """Always `Bearer`."""
    expires_in: int
    """Time until the token expires, in seconds."""


class ApproveDevice(Body):
    """Body of `POST /v1/auth/approve`: lets a device in, or turns it away."""

    user_code: Annotated[str, Field(min_length=1, max_length=32)]
    """Code that the device shows."""
    deny: Switch = False
    """Turn the device away instead of approving it."""


class ApiKey(Record):
    """One key, without its text. `key_prefix` is its beginning, to tell it from others."""

    id: Id
    """Unique id."""
    name: str
    """Name that its owner gave it."""
    key_prefix: str
    """First characters of the key, to recognize it by."""
    created_at: Timestamp
    """When it was created."""
    last_used_at: Timestamp | None = None
    """When a request last used it; null when none has."""


class ApiKeyMade(Record):
    """Answer of creating a key. `key` is its text, which is never shown again."""

    api_key: ApiKey
    """Record of the new key."""
    key: str
    """The key itself. It is shown only this once."""


class ApiKeyList(Record):
    """A page of keys, newest first."""

    api_keys: list[ApiKey]
    """Keys on this page."""
    total: int
    """Number of entries on all pages together."""
    page: int
    """Number of this page, from 1."""
    limit: int
    """Most entries on a page."""
    total_pages: int
    """Number of pages."""


class CreateApiKey(Body):
    """Body of making a key."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name to recognize the key by."""


class User(Record):
    """A person. `email` and `name` come from the issuer of their tokens."""

    id: Id
    """Unique id."""
    email: str | None = None
    """Email address."""
    name: str | None = None
    """Name to show."""
    created_at: Timestamp
    """When it was created."""


class UserProfile(Record):
    """Answer of `GET /v1/user/profile`."""

    user: User
    """The user."""


class Organization(Record):
    """An organization and the caller's role in it, `admin` or `member`."""

    id: Id
    """Unique id."""
    name: str
    """Name to show."""
    role: str
    """Role of the caller: `admin` or `member`."""


class OrganizationList(Record):
    """Answer of `GET /v1/organizations`."""

    organizations: list[Organization]
    """Organizations of the user."""


class Service(Record):
    """One service. `own` is the one that answers, `alive` one that was seen a moment ago."""

    home_id: UUID
    """Id of its home."""
    own: bool
    """Whether it is the one that answers."""
    alive: bool
    """Whether it reported a moment ago."""
    url: str | None = None
    """Its address."""
    seen_at: datetime | None = None
    """When it last reported."""


class ServiceList(Record):
    """Answer of `GET /v1/services`."""

    services: list[Service]
    """Services that share the database."""


OK = "ok"
UNAVAILABLE = "unavailable"
"""The service runs, but its database cannot be reached: the status of a 503."""


class Health(Record):
    """Whether the service can serve: `status` is `ok` or `unavailable`; `version` is the program's."""

    status: str
    """Always `ok`."""
    version: str
    """Version of the program."""


TARGET_LENGTH = 2000


class ConnectChatapp(Body):
    """Body of `POST /v1/chatapp/user/connection`: the address of a notification service."""

    url: Annotated[str, Field(min_length=1, max_length=TARGET_LENGTH)]
    """Address of a notification service, in the notation of Apprise."""


class ChatappConnection(Record):
    """Whether there is a target. Its address, which holds secrets, is never returned."""

    connected: bool
    """Whether notifications are sent anywhere."""
    service: str | None = None
    """Name of the notification service."""
    created_at: Timestamp | None = None
    """When it was connected."""


class NotificationTried(Record):
    """Answer of a test: whether the target accepted the notification."""

    delivered: bool
    """Whether the notification service accepted it."""


class WebhookSecret(Record):
    """The text with which an organization's webhook calls are signed."""

    secret: str
    """Key of the HMAC-SHA256 in `X-Service-Signature`."""
