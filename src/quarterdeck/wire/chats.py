"""Chats: each runs one coding agent (INTERFACE 4).

Requests and answers of the control plane use snake_case; the same chat inside an event is camelCase.
"""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, CamelBody, CamelRecord, GivenId, Id, Record, Timestamp
from quarterdeck.wire.goals import ChatGoal, EventGoal


class Chat(Record):
    """A chat as the control plane answers it."""

    id: Id
    provider: str
    title: str | None = None
    created_at: Timestamp
    updated_at: Timestamp
    processing: bool = False
    awaiting_input: bool = False
    parent_chat_id: Id | None = None
    last_message_text: str | None = None
    goal: ChatGoal | None = None
    """What the agent works towards by itself (own field); null on agents without goals."""
    plan_ready: bool | None = None
    """A plan waits for the person's word (own field): the newest turn was to make one and ended well,
    and nothing was sent since. Null where it is not told."""
    processing_since: Timestamp | None = None
    """When the running turn began (own field)."""


class EventChat(CamelRecord):
    """The same chat as events carry it."""

    id: Id
    provider: str
    title: str | None = None
    created_at: Timestamp
    updated_at: Timestamp
    processing: bool = False
    awaiting_input: bool = False
    parent_chat_id: Id | None = None
    last_message_text: str | None = None
    goal: EventGoal | None = None
    plan_ready: bool | None = None
    processing_since: Timestamp | None = None

    def as_chat(self) -> Chat:
        """The chat under the control plane's names."""
        return Chat.model_validate(self.model_dump(by_alias=False))


class ChatList(Record):
    """Answer of `GET .../chats`."""

    chats: list[Chat]


class ChatAnswer(Record):
    """Answer of creating or renaming a chat."""

    chat: Chat


class CreateChat(CamelBody):
    """Body of `POST .../chats`. With `id` the caller chooses the chat's id."""

    provider: Annotated[str, Field(min_length=1, max_length=100)]
    title: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    id: GivenId | None = None
    parent_chat_id: GivenId | None = None
    client_request_id: str | None = None


class RenameChat(Body):
    """Body of `PATCH .../chats/{chat_id}` (specification, operation 5)."""

    display_name: Annotated[str, Field(min_length=1, max_length=100)]


class Interrupted(Record):
    """Answer of interrupting: whether a turn ran, and what is still queued."""

    interrupted: bool
    queue: list[Id]


class RespondBody(CamelBody):
    """Body of `POST .../chats/{chat_id}/respond`: one of `optionId` and `text`."""

    request_id: str
    option_id: str | None = None
    text: str | None = None


class SlashCommand(CamelRecord):
    """A word that a message may begin with; `providers` are the agents that know it."""

    command: str
    description: str
    argument_hint: str | None = None
    providers: list[str]


class SlashCommands(Record):
    """Answer of `GET .../chats/{chat_id}/slash-commands`."""

    commands: list[SlashCommand]
