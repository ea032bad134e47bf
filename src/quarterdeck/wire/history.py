"""A chat's history and the agent events in it (specification, operation 15; INTERFACE 5)."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from quarterdeck.wire.base import CamelRecord, Record, Timestamp
from quarterdeck.wire.messages import Sender


class AgentEventType(StrEnum):
    """Types of agent events that this service writes. Others may come from other servers."""

    SESSION_UPDATE = "acp-session_update"
    PERMISSION_REQUEST = "acp-permission_request"
    PERMISSION_OUTCOME = "acp-permission_outcome"
    USER_MESSAGE = "user-message"
    TURN_RESULT = "turn-result"


class AgentEvent(Record):
    """One event of a chat: `type` names the shape of `payload`."""

    timestamp: Timestamp
    type: str
    payload: dict[str, Any] = {}


class TurnResult(CamelRecord):
    """Payload of `turn-result`: how a turn ended.

    `stopReason` is the protocol's (`end_turn`, `cancelled`, ...) or `failed` with `error` set.
    """

    message_id: str
    stop_reason: str
    error: str | None = None
    usage: dict[str, Any] | None = None


class UserMessage(CamelRecord):
    """Payload of `user-message`: what the person said, as the agent got it."""

    message_id: str
    text: str
    images: list[dict[str, Any]] | None = None
    uploads: list[str] | None = None
    plan_mode: bool = False
    goal_mode: bool = False


class AspTranscript(Record):
    """Native transcript of one agent kind."""

    turns: list[dict[str, Any]] = []


class History(Record):
    """A page of history, taken from the end."""

    thread_id: str
    events: list[AgentEvent]
    total: int
    has_more: bool
    events_start_index: int | None = Field(default=None, alias="eventsStartIndex")
    turns_start_index: int | None = Field(default=None, alias="turnsStartIndex")
    before_cursor: str | None = Field(default=None, alias="beforeCursor")
    agent_asp_transcript: AspTranscript | None = Field(default=None, alias="agentAspTranscript")
    senders: list[Sender] = []
    canceled_message_ids: list[str] = Field(default=[], alias="canceledMessageIds")
    coding_agent: str | None = None
    waking: bool = False
    log_index: int | None = Field(default=None, alias="logIndex")
    """Index in the replica's event log that this page reflects (own field): the event stream
    opened after it goes on exactly where the page ends."""
