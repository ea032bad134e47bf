"""Where a person's notifications go (specification, operation 23; INTERFACE 9)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Record, Timestamp

TARGET_LENGTH = 2000


class ConnectChatapp(Body):
    """Body of `POST /v1/chatapp/user/connection`: the address of a notification service."""

    url: Annotated[str, Field(min_length=1, max_length=TARGET_LENGTH)]


class ChatappConnection(Record):
    """Whether there is a target. Of its address, which holds its secrets, only the service is told."""

    connected: bool
    service: str | None = None
    created_at: Timestamp | None = None


class NotificationTried(Record):
    """Answer of a test: whether the target took the notification."""

    success: bool


class WebhookSecret(Record):
    """The text with which an organization's webhook calls are signed."""

    secret: str
