"""Chats, each with one coding agent: messages, images and goals (docs/interface.md 4).

Requests and answers of the control plane use snake_case; the same chat inside an event is camelCase.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StrictInt

from quarterdeck.wire.base import (
    INTEGRAL,
    Body,
    CamelBody,
    CamelRecord,
    GivenId,
    Id,
    Record,
    Switch,
    Timestamp,
)

PLAN_APPROVED = "The plan is approved. Go ahead and implement it."
"""The message that starts a plan."""

TOKEN_BUDGET_LIMIT = 10**12
"""Largest token budget; larger ones do not fit every database's integers."""


class GoalStatus(StrEnum):
    """State of a goal. Only an active one is worked on."""

    ACTIVE = "active"
    PAUSED = "paused"
    BLOCKED = "blocked"
    USAGE_LIMITED = "usage_limited"
    BUDGET_LIMITED = "budget_limited"
    COMPLETE = "complete"


class _GoalFields(BaseModel, defer_build=True):
    """A goal, under either family of names."""

    objective: str
    """What to achieve."""
    status: str
    """`active`, `paused`, `blocked`, `usage_limited`, `budget_limited` or `complete`."""
    token_budget: int | None = None
    """Most tokens to use; null for no limit."""
    tokens_used: int = 0
    """Tokens used since the goal was set."""
    time_used_seconds: int = 0
    """Seconds worked since the goal was set."""


class ChatGoal(_GoalFields, Record):
    """A goal as the control plane answers it. Counters are those since it was set."""


class EventGoal(_GoalFields, CamelRecord):
    """The same goal as events carry it."""

    def as_goal(self) -> ChatGoal:
        """Return the goal under the control plane's names."""
        return ChatGoal.model_validate(self.model_dump(by_alias=False))


class UpdateGoal(Body):
    """Body of `PATCH .../goal`: at least one field. An objective replaces the goal."""

    objective: Annotated[str, Field(min_length=1)] | None = None
    """What to achieve; replaces the goal and resets its counters."""
    status: Literal["active", "paused"] | None = None
    """Pause or resume the goal."""
    token_budget: Annotated[StrictInt, Field(ge=1, le=TOKEN_BUDGET_LIMIT), INTEGRAL] | None = None
    """Most tokens to use."""


class GoalAnswer(Record):
    """Answer of `PATCH .../goal`; null on chats whose agent has no goals."""

    goal: ChatGoal | None
    """The goal; null without one."""


class SettingValue(Record):
    """The value of a setting of an agent's session."""

    id: str
    """Identifier to send."""
    name: str
    """Name to show."""


class SettingChoice(SettingValue):
    """A value that the agent offers."""

    description: str | None = None
    """What it does; null where the agent does not say."""


class ChatSetting(Record):
    """A setting of an agent's session, as the agent announces it."""

    current: SettingValue | None = None
    """Current value; null where it is not known."""
    choices: list[SettingChoice] = []
    """Values to choose from."""


class ChatSettings(Record):
    """Answer of `GET .../chats/{chat_id}/settings`; null for what the agent does not offer."""

    permission_mode: ChatSetting | None = None
    """What the agent may do unasked. Plan mode is not among the choices: a message asks for it."""
    model: ChatSetting | None = None
    """Model."""
    thinking_level: ChatSetting | None = None
    """How much the model thinks."""


SettingId = Annotated[str, Field(min_length=1, max_length=200)]


class UpdateSettings(Body):
    """Body of `PATCH .../chats/{chat_id}/settings`: at least one field; kept until the next change."""

    permission_mode: SettingId | None = None
    """One of the offered modes; also for the running turn."""
    model: SettingId | None = None
    """Model, from the next message on."""
    thinking_level: SettingId | None = None
    """Thinking level, from the next message on."""


class _ChatFields(BaseModel, defer_build=True):
    """A chat, under either family of names."""

    id: Id
    """Unique id."""
    provider: str
    """Agent of the chat."""
    title: str | None = None
    """Title; null until there is one."""
    created_at: Timestamp
    """When it was created."""
    updated_at: Timestamp
    """When it was last changed."""
    processing: bool = False
    """Whether a turn runs."""
    awaiting_input: bool = False
    """Whether the agent waits for an answer to a question."""
    parent_chat_id: Id | None = None
    """Chat that it was started from."""
    last_message_text: str | None = None
    """Beginning of the newest message."""
    plan_ready: bool | None = None
    """Whether a plan waits for approval: the newest turn was to make one and ended well, and nothing
    was sent since (own field). Null where it is not known."""
    processing_since: Timestamp | None = None
    """When the running turn began; null when none runs (own field)."""
    turn_failed: bool | None = None
    """Whether the newest turn failed; null when none has ended since the newest message (own field)."""
    permission_mode: SettingValue | None = None
    """Permission mode of the agent; while a turn plans, its plan mode (own field)."""
    model: SettingValue | None = None
    """Model of the agent's session; null until the agent announced one (own field)."""
    thinking_level: SettingValue | None = None
    """Thinking level of the agent's session, where it has levels (own field)."""


class Chat(_ChatFields, Record):
    """A chat as the control plane answers it."""

    goal: ChatGoal | None = None
    """What the agent works towards by itself (own field); null on agents without goals."""


class EventChat(_ChatFields, CamelRecord):
    """The same chat as events carry it."""

    goal: EventGoal | None = None
    """What the agent works towards by itself; null without a goal."""

    def as_chat(self) -> Chat:
        """Return the chat under the control plane's names."""
        return Chat.model_validate(self.model_dump(by_alias=False))


class ChatList(Record):
    """Answer of `GET .../chats`."""

    chats: list[Chat]
    """Chats, oldest first."""


class ChatAnswer(Record):
    """Answer of creating or renaming a chat."""

    chat: Chat
    """The chat."""


class CreateChat(CamelBody):
    """Body of `POST .../chats`. With `id` the caller chooses the chat's id."""

    provider: Annotated[str, Field(min_length=1, max_length=100)]
    """Agent of the chat."""
    title: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Title to show."""
    id: GivenId | None = None
    """Id for the chat; chosen by the service when it is left out."""
    parent_chat_id: GivenId | None = None
    """Chat that it is started from."""
    client_request_id: str | None = None
    """Any text; the event `chat.created` repeats it."""


class RenameChat(Body):
    """Body of `PATCH .../chats/{chat_id}` (specification, operation 5)."""

    display_name: Annotated[str, Field(min_length=1, max_length=100)]
    """New title."""


class Interrupted(Record):
    """Answer of interrupting: whether a turn ran, and what is still queued."""

    interrupted: bool
    """Whether a turn was running."""
    queue: list[Id]
    """Ids of the messages that still wait."""


class RespondBody(CamelBody):
    """Body of `POST .../chats/{chat_id}/respond`: one of `optionId` and `text`."""

    request_id: str
    """Id of the request, from `acp-permission_request`."""
    option_id: str | None = None
    """Option that is chosen."""
    text: str | None = None
    """Answer in words, where the request accepts a text."""
    message: Annotated[str, Field(min_length=1)] | None = None
    """A message for the agent, for instance why; it comes before those that wait."""


class SlashCommand(CamelRecord):
    """A word that a message may begin with; `providers` are the agents that know it."""

    command: str
    """Command, with its slash."""
    description: str
    """What it does."""
    argument_hint: str | None = None
    """What may follow it."""
    providers: list[str]
    """Agents that know it."""


class SlashCommands(Record):
    """Answer of `GET .../chats/{chat_id}/slash-commands`."""

    commands: list[SlashCommand]
    """Commands of the chat."""


MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


def media_type_of(content: bytes) -> MediaType | None:
    """Return what the first bytes say; None for no image that a message takes."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None


ThinkingLevel = Literal["low", "medium", "high", "xhigh", "max"]
"""The levels that every agent accepts; one without the level takes the nearest lower one it has."""

Model = Annotated[str, Field(min_length=1)]
"""One of an agent's models; which there are is the agent's matter."""


class Base64Source(Body):
    """An image carried in the request."""

    type: Literal["base64"]
    """Kind of source."""
    media_type: MediaType
    """Media type of the image."""
    data: str
    """Image in base64."""


class UrlSource(Body):
    """An image that the agent fetches."""

    type: Literal["url"]
    """Kind of source."""
    url: str
    """Address of the image."""


class Image(Body):
    """An image beside a message."""

    type: Literal["image"] = "image"
    """Always `image`."""
    source: Annotated[Base64Source | UrlSource, Field(discriminator="type")]
    """Where the image comes from."""


class SendMessage(Body):
    """Body of `POST .../messages`. Neither text nor uploads: 400.

    Without `model` it goes by the one chosen last in its chat, else by the one of the replica.
    """

    message: str = ""
    """Text. A leading `/plan`, `/goal` or `/fast` sets that mode and is removed."""
    chat_id: GivenId | None = None
    """Chat. Without it the message goes to the first chat of `coding_agent`, or of the replica."""
    coding_agent: str | None = None
    """Agent of the chat; without `chat_id`, a chat is created when the agent has none."""
    model: Model | None = None
    """Model, from here on in this chat."""
    images: list[Image] | None = None
    """Images beside the text."""
    plan_mode: Switch | None = None
    """Let the agent make a plan first."""
    goal_mode: Switch | None = None
    """Set the text as the goal of the chat."""
    fast_mode: Switch | None = None
    """Use the agent's fast mode."""
    thinking_level: SettingId | None = None
    """How much the model thinks, from here on in this chat: `low`, `medium`, `high`, `xhigh`, `max`,
    or another level that the agent offers."""
    canvas_upload_ids: Annotated[list[str] | None, Field(alias="canvasUploadIds")] = None
    """Queued canvas uploads to deliver with the message."""


MOST_IMAGES = 20
"""Most images of one message."""


class Delivery(StrEnum):
    """Where an accepted message is."""

    SENT = "sent"
    QUEUED = "queued"
    WAKING = "waking"


class MessageAccepted(Record):
    """Answer of send: the message is durable from here on."""

    status: str
    """`sent`: it runs. `queued`: it waits for the running turn. `waking`: it waits for the
    replica."""
    message_id: Id
    """Id of the message."""
    position: int | None = None
    """Position in the queue, from 1; null when it runs at once."""
    chat_id: Id
    """Id of the chat."""


class QueuedMessage(CamelRecord):
    """One message that waits for the running turn."""

    id: Id
    """Unique id."""
    message: str
    """Text."""
    queued_at: Timestamp
    """When it was queued."""
    sender_user_id: Id | None = None
    """User that sent it."""
    sender_email: str | None = None
    """Email address of the user that sent it."""


class Queue(CamelRecord):
    """Answer of `GET .../chats/{chat_id}/queue`, first to run first."""

    chat_id: Id
    """Id of the chat."""
    processing: bool
    """Whether a turn runs."""
    queue: list[QueuedMessage]
    """Messages that wait, first to run first."""


class QueueAnswer(CamelRecord):
    """Answer of changing the queue: what waits now."""

    success: bool = True
    """Always true: a failure is answered with an Error object."""
    queue: list[QueuedMessage]
    """Messages that wait now, first to run first."""


class SteerAnswer(QueueAnswer):
    """Answer of putting a message into the running turn."""

    interrupted: bool = False
    """Whether the turn was interrupted instead, and the message is the next one: its agent takes
    none in a turn."""


class JoinQueue(CamelBody):
    """Body of `POST .../queue/join`."""

    message_ids: list[GivenId] | None = None
    """Messages to join, at least two; by default all that wait."""


class ReorderQueue(CamelBody):
    """Body of `PATCH .../queue/reorder`; positions count from 0, one after the end is the last."""

    message_id: GivenId
    """Message to move."""
    position: Annotated[StrictInt, Field(ge=0), INTEGRAL]
    """New position, from 0; one beyond the end is the last."""


MODE_PREFIXES = {"/plan": "plan_mode", "/goal": "goal_mode", "/fast": "fast_mode"}
"""A leading word that is stripped from a message and sets a mode."""


class Sender(CamelRecord):
    """Who sent a user message."""

    sender_user_id: Id | None = None
    """User that sent it."""
    sender_email: str | None = None
    """Email address of the user that sent it."""
    recorded_at: Timestamp
    """When it was received."""
    message_id: Id | None = None
    """Id of the message."""
