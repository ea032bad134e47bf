"""A chat's history and the agent events in it (specification, operation 15; docs/interface.md 5)."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from quarterdeck.wire.base import CamelRecord, Record, Timestamp
from quarterdeck.wire.chats import Sender
from quarterdeck.wire.json_size import LARGEST_NUMBER


class TurnOrigin(StrEnum):
    """Who began a turn that no message began."""

    AGENT = "agent"


class AgentEventType(StrEnum):
    """Types of agent events that this service writes. Others may come from other servers."""

    SESSION_UPDATE = "acp-session_update"
    PERMISSION_REQUEST = "acp-permission_request"
    PERMISSION_OUTCOME = "acp-permission_outcome"
    POLICY_ANSWER = "policy-answer"
    USER_MESSAGE = "user-message"
    TURN_STARTED = "turn-started"
    TURN_RESULT = "turn-result"
    NOTICE = "notice"
    GIT_OPERATION = "git-operation"


STATE_UPDATES = frozenset(
    {
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
    }
)
"""Session updates with the session's current state: they are no part of a turn's text or history."""


NOTED_STATE = "quarterdeck/state"
"""Key in `_meta` of a `session_info_update`: what an agent is doing while it does not go on, such as
reconnecting; it holds until the agent's next update."""


class AgentEvent(Record):
    """One event of a chat: `type` names the shape of `payload`."""

    timestamp: Timestamp
    """When it happened."""
    type: str
    """Type of the event."""
    payload: dict[str, Any] = {}
    """Details, by type."""


class TurnCost(Record):
    """What a turn cost, as its agent told."""

    amount: float
    """Amount of money, at least 0."""
    currency: str
    """Currency by its ISO 4217 code, such as `USD`."""


class TurnResult(CamelRecord):
    """Payload of `turn-result`: how a turn ended.

    `stopReason` is the protocol's (`end_turn`, `cancelled`, ...) or `failed` with `error` set.
    """

    message_id: str
    """Message that the turn answered."""
    stop_reason: str
    """Why the turn ended: `end_turn`, `cancelled`, `failed` or another reason of the protocol."""
    error: str | None = None
    """Why it failed."""
    usage: dict[str, Any] | None = None
    """Tokens used, as the agent counts them."""
    stopped: bool = Field(default=False, exclude_if=lambda stopped: not stopped)
    """Its workspace was put to rest in the middle of it; left out otherwise (own field)."""
    model: str | None = Field(default=None, exclude_if=lambda model: model is None)
    """Id of the model that the turn ran with; left out when it is not known (own field)."""
    duration_ms: int | None = Field(
        default=None, le=LARGEST_NUMBER, exclude_if=lambda duration: duration is None
    )
    """How long it ran, in milliseconds; left out when it is not known (own field)."""
    cost: TurnCost | None = Field(default=None, exclude_if=lambda cost: cost is None)
    """What it cost; left out when the agent does not tell (own field)."""


class UserMessage(CamelRecord):
    """Payload of `user-message`: the person's message, as the agent received it."""

    message_id: str
    """Id of the message."""
    text: str
    """Text as the agent received it."""
    images: list[dict[str, Any]] | None = None
    """Images beside the text."""
    uploads: list[str] | None = None
    """Paths of canvas uploads."""
    plan_mode: bool = False
    """Whether plan mode was on."""
    goal_mode: bool = False
    """Whether goal mode was on."""
    steered: bool = Field(default=False, exclude_if=lambda steered: not steered)
    """It was put into the running turn; left out when it began one (own field)."""


class OwnTurnStarted(CamelRecord):
    """Payload of `turn-started`: the agent began a turn by itself (own type)."""

    message_id: str
    """Id of the turn, in the place of a message's."""
    origin: TurnOrigin = TurnOrigin.AGENT
    """Who began it."""


class NoticePayload(CamelRecord):
    """Payload of `notice`: something that a person should know (own type).

    It is a warning of the agent's program, or says that nothing comes from the agent.
    """

    text: str
    """The notice, in one line."""


class SessionUpdatePayload(CamelRecord):
    """Payload of `acp-session_update`: an update object of the Agent Client Protocol.

    `sessionUpdate` names its kind, which decides on the other fields.
    """

    session_update: str
    """Kind of update, such as `agent_message_chunk`, `agent_thought_chunk`, `user_message_chunk`,
    `tool_call`, `tool_call_update`, `plan`, `available_commands_update` or `current_mode_update`.
    https://agentclientprotocol.com/protocol/schema describes the fields of each."""


class PermissionChoice(CamelRecord):
    """One of the answers that a permission request offers."""

    option_id: str
    """Id to send back in `respond`."""
    name: str = ""
    """Text to show."""
    kind: str = ""
    """Kind of answer, such as `allow_once`, `allow_always`, `reject_once` or `reject_always`."""


class PermissionRequestPayload(CamelRecord):
    """Payload of `acp-permission_request`: the agent waits for an answer to a question."""

    request_id: str
    """Id of the request, for `respond`."""
    title: str | None = None
    """The question, when it is not about a tool call."""
    tool_call: dict[str, Any] | None = None
    """The protocol's tool call that needs permission."""
    options: list[PermissionChoice] = []
    """Answers to choose from."""
    accepts_text: bool = False
    """Whether a free text is an answer."""
    secret: bool = False
    """Whether the answer is a secret, to be hidden while it is typed; it is not recorded."""


class PermissionResult(CamelRecord):
    """How a permission request ended."""

    outcome: str
    """`selected` with an option, `answered` with a text, or `cancelled`."""
    option_id: str | None = None
    """The option that was chosen."""
    text: str | None = None
    """The text that was written; left out for a secret."""


class PermissionOutcomePayload(CamelRecord):
    """Payload of `acp-permission_outcome`: a permission request is closed."""

    request_id: str
    """Id of the request."""
    outcome: PermissionResult
    """How it ended."""


class PolicyAnswerPayload(CamelRecord):
    """Payload of `policy-answer`: the permission policy answered a permission request (own type)."""

    request_id: str
    """Id of the request; only one that was open before has events of its own."""
    tool_call: dict[str, Any] = {}
    """The protocol's tool call that needed permission."""
    allowed: bool
    """Whether it was allowed, once; false: rejected."""
    policy: str | None = None
    """The policy that allowed it; null when rules did."""
    rules: list[str] = []
    """Patterns of the rules that allowed its commands, or of the one that rejected it."""
    text: str
    """The answer, in one line."""


class GitOperationPayload(CamelRecord):
    """Payload of `git-operation`: an operation of the service on the repositories (own type)."""

    operation: str
    """`commit`, `update`, `push`, `pull_request`, `merge` (of a pull request), `rewind`, `fork` or
    `restore`."""
    repository: str | None = None
    """Name of the repository; null when it was done to all of them."""
    text: str
    """The operation, in one line."""


AGENT_PAYLOADS: dict[AgentEventType, type[CamelRecord]] = {
    AgentEventType.SESSION_UPDATE: SessionUpdatePayload,
    AgentEventType.PERMISSION_REQUEST: PermissionRequestPayload,
    AgentEventType.PERMISSION_OUTCOME: PermissionOutcomePayload,
    AgentEventType.POLICY_ANSWER: PolicyAnswerPayload,
    AgentEventType.USER_MESSAGE: UserMessage,
    AgentEventType.TURN_STARTED: OwnTurnStarted,
    AgentEventType.TURN_RESULT: TurnResult,
    AgentEventType.NOTICE: NoticePayload,
    AgentEventType.GIT_OPERATION: GitOperationPayload,
}
"""The payload model of each type of agent event."""


class AspTurn(CamelRecord):
    """One turn of a native transcript. Times are read as ISO 8601 and as seconds since 1970."""

    id: str
    """Id of the message that the turn answers."""
    items: list[dict[str, Any]] = []
    """Items of the turn; `type` names the shape of each item."""
    status: str | None = None
    """`inProgress`, `completed`, `interrupted` or `failed`."""
    error: dict[str, Any] | None = None
    """Why it failed, as `{message}`."""
    started_at: Timestamp | None = None
    """When it began."""
    completed_at: Timestamp | None = None
    """When it ended."""


class AspTranscript(Record):
    """Native transcript of one agent kind."""

    turns: list[AspTurn] = []
    """Turns that end on this page."""


class History(Record):
    """A page of history, taken from the end."""

    thread_id: str
    """Id of the chat, or of the replica when no chat was named."""
    events: list[AgentEvent]
    """Events in order."""
    total: int
    """Number of all events."""
    has_more: bool
    """Whether there are earlier events."""
    events_start_index: int | None = Field(default=None, alias="eventsStartIndex")
    """Index of the first event of the page, for `beforeEvent`."""
    turns_start_index: int | None = Field(default=None, alias="turnsStartIndex")
    """Index of the first turn of the page, for `beforeTurn`."""
    before_cursor: str | None = Field(default=None, alias="beforeCursor")
    """Cursor of the page before this one, for `beforeCursor`."""
    agent_asp_transcript: AspTranscript | None = Field(default=None, alias="agentAspTranscript")
    """Native transcript, for chats of agents that have one."""
    senders: list[Sender] = []
    """Who sent the user messages."""
    canceled_message_ids: list[str] = Field(default=[], alias="canceledMessageIds")
    """Messages that were removed from the queue."""
    coding_agent: str | None = None
    """Agent of the chat."""
    waking: bool = False
    """Whether the replica is being woken."""
    log_index: int | None = Field(default=None, alias="logIndex")
    """Index in the replica's event log that this page reflects (own field): the event stream
    opened after it goes on exactly where the page ends."""
