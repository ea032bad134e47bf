"""Sending messages and the queue behind a running turn (INTERFACE 4)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from quarterdeck.wire.base import (
    Body,
    CamelBody,
    CamelRecord,
    GivenId,
    Id,
    Record,
    Switch,
    Timestamp,
    Whole,
)
from quarterdeck.wire.images import MediaType

ThinkingLevel = Literal["low", "medium", "high", "xhigh", "max"]

Model = Annotated[str, Field(min_length=1)]
"""One of an agent's models; which there are is the agent's matter."""


class Base64Source(Body):
    """An image carried in the request."""

    type: Literal["base64"]
    media_type: MediaType
    data: str


class UrlSource(Body):
    """An image that the agent fetches."""

    type: Literal["url"]
    url: str


class Image(Body):
    """An image beside a message."""

    type: Literal["image"] = "image"
    source: Annotated[Base64Source | UrlSource, Field(discriminator="type")]


class SendMessage(Body):
    """Body of `POST .../messages`. Neither text nor uploads: 400.

    Without `model` it goes by the one chosen last in its chat, else by the one of the replica.
    """

    message: str = ""
    chat_id: GivenId | None = None
    coding_agent: str | None = None
    model: Model | None = None
    images: list[Image] | None = None
    plan_mode: Switch | None = None
    goal_mode: Switch | None = None
    fast_mode: Switch | None = None
    thinking_level: ThinkingLevel | None = None
    canvas_upload_ids: Annotated[list[str] | None, Field(alias="canvasUploadIds")] = None


class Delivery(StrEnum):
    """Where an accepted message is."""

    SENT = "sent"
    QUEUED = "queued"
    WAKING = "waking"


class MessageAccepted(Record):
    """Answer of send: the message is durable from here on."""

    status: str
    message_id: Id
    position: int | None = None
    chat_id: Id


class QueuedMessage(CamelRecord):
    """One message that waits for the running turn."""

    id: Id
    message: str
    queued_at: Timestamp
    sender_user_id: Id | None = None
    sender_email: str | None = None


class Queue(CamelRecord):
    """Answer of `GET .../chats/{chat_id}/queue`, first to run first."""

    chat_id: Id
    processing: bool
    queue: list[QueuedMessage]


class QueueAnswer(CamelRecord):
    """Answer of changing the queue: what waits now."""

    success: bool = True
    queue: list[QueuedMessage]


class ReorderQueue(CamelBody):
    """Body of `PATCH .../queue/reorder`; places count from 1, one behind the end is the last."""

    message_id: GivenId
    position: Annotated[Whole, Field(ge=1)]


MODE_PREFIXES = {"/plan": "plan_mode", "/goal": "goal_mode", "/fast": "fast_mode"}
"""A leading word that is stripped from a message and sets a mode."""


class Sender(CamelRecord):
    """Who sent a user message."""

    sender_user_id: Id | None = None
    sender_email: str | None = None
    recorded_at: Timestamp
    message_id: Id | None = None
