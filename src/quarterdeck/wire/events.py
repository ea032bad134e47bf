"""The per-replica event stream (specification, Events; docs/interface.md 5).

`Event` is the envelope with its payload left as data; `payload_of` reads the payload of a known
type. An unknown type or an unexpected shape of a payload is never an exception: the reader gets
`None` and the envelope keeps everything.
"""

from enum import StrEnum
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, ValidationError

from quarterdeck.wire.agents import AgentModels
from quarterdeck.wire.base import CamelRecord, Id, Record, Timestamp
from quarterdeck.wire.chats import ChatSettings, EventChat
from quarterdeck.wire.git_state import ReposChanged
from quarterdeck.wire.history import AgentEvent, TurnOrigin
from quarterdeck.wire.previews import Preview


class EventType(StrEnum):
    """The nineteen types of the specification."""

    ENGINE_READY = "engine.ready"
    ENGINE_STATUS_CHANGED = "engine.status.changed"
    REPO_DISCOVERED = "repo.discovered"
    REPO_STATUS_CHANGED = "repo.status.changed"
    CHAT_CREATED = "chat.created"
    CHAT_UPDATED = "chat.updated"
    CHAT_DELETED = "chat.deleted"
    CHAT_TURN_ACCEPTED = "chat.turn.accepted"
    CHAT_TURN_STARTED = "chat.turn.started"
    CHAT_TURN_DELTA = "chat.turn.delta"
    CHAT_TURN_COMPLETED = "chat.turn.completed"
    CHAT_INTERRUPTED = "chat.interrupted"
    HOOKS_STARTED = "hooks.started"
    HOOKS_PROGRESS = "hooks.progress"
    HOOKS_COMPLETED = "hooks.completed"
    HOOKS_FAILED = "hooks.failed"
    HOOKS_STATUS = "hooks.status"
    PREVIEW_CHANGED = "preview.changed"
    ERROR = "error"


class AutomationEventType(StrEnum):
    """Types of `GET /v1/automations/events` (own stream)."""

    AUTOMATION_CHANGED = "automation.changed"
    AUTOMATION_DELETED = "automation.deleted"
    EXECUTION_CHANGED = "execution.changed"
    REPLICA_CHANGED = "replica.changed"


class Event(Record):
    """The envelope. `id` is unique; the stream's own `id:` line is the index in the log."""

    id: str
    """Unique id of the event."""
    ts: Timestamp
    """When it happened."""
    type: str
    """Type of the event."""
    payload: dict[str, Any] = {}
    """Details, by type."""


class EngineReady(CamelRecord):
    """Engine initialization is complete."""

    version: str
    """Version of the engine."""


class EngineStatus(CamelRecord):
    """Counts that the engine reports of itself."""

    uptime_seconds: int = 0
    """Seconds since the engine started."""
    active_sse_clients: int = 0
    """Number of open event streams."""
    chats_total: int = 0
    """Number of chats."""
    chats_processing: int = 0
    """Number of chats with a running turn."""
    repos_total: int = 0
    """Number of repositories."""
    hooks_running: bool = False
    """Whether a hook runs."""


class EngineStatusChanged(CamelRecord):
    """`workspaceStatus` is set when the workspace's state changed."""

    status: EngineStatus | None = None
    """Counts of the engine."""
    workspace_status: str | None = None
    """New state of the replica; null when it has not changed."""
    error: str | None = None
    """Why the replica is in the state `error`."""


class JoinedMessages(CamelRecord):
    """The message that replaces others, and those in order."""

    message_id: Id
    """Id of the message that waits now."""
    message_ids: list[Id]
    """Ids of the messages that it was made of."""


class ChatChanged(CamelRecord):
    """Payload of `chat.created` and `chat.updated`.

    When the queue was changed by hand, `queue` holds the waiting messages in order,
    `canceledMessageIds` the removed ones and `steeredMessageIds` those put into the running turn (own
    fields). `models` are those that the agent announced,
    between the engine and the service only.
    """

    chat: EventChat
    """The chat as it is now."""
    client_request_id: str | None = None
    """`clientRequestId` of the request that created the chat."""
    queue: list[str] | None = None
    """Ids of the messages that wait, first to run first; null when the queue has not changed."""
    canceled_message_ids: list[str] | None = None
    """Ids of the messages that were removed from the queue."""
    steered_message_ids: list[str] | None = None
    """Ids of the messages that were put into the running turn."""
    joined: JoinedMessages | None = None
    """Messages that were replaced by one, between the engine and the service only."""
    models: AgentModels | None = None
    """Models that the agent has announced; null when they have not changed."""
    settings: ChatSettings | None = None
    """Settings that the agent has announced, likewise between the engine and the service only."""


class ChatDeleted(CamelRecord):
    """A chat was deleted."""

    chat_id: str
    """Id of the deleted chat."""


class TurnAccepted(CamelRecord):
    """A message is durable; `queued` with its place when a turn is running."""

    chat_id: str
    """Id of the chat."""
    message_id: str
    """Id of the message."""
    queued: bool = False
    """Whether it waits for a running turn."""
    position: int | None = None
    """Position in the queue, from 1; null when it runs at once."""


class TurnStarted(CamelRecord):
    """The agent has the message, or continues by itself."""

    chat_id: str
    """Id of the chat."""
    message_id: str
    """Id of the message; a new one when the agent began the turn."""
    origin: TurnOrigin | None = Field(default=None, exclude_if=lambda origin: origin is None)
    """`agent`: the agent began the turn by itself, without a message; otherwise left out (own
    field)."""


class TurnDelta(CamelRecord):
    """One agent event of a turn."""

    chat_id: str
    """Id of the chat."""
    message_id: str | None = None
    """Message that the turn answers; null between turns."""
    event: AgentEvent
    """Event of the agent."""


class TurnCompleted(CamelRecord):
    """The turn is over; `isComplete` false means interrupted or failed.

    `planReady` (own field): it has made a plan, which waits for approval.
    """

    chat_id: str
    """Id of the chat."""
    message_id: str
    """Id of the message."""
    is_complete: bool
    """False when the turn was interrupted or failed."""
    processing: bool = False
    """Whether the next turn follows at once."""
    plan_ready: bool | None = None
    """Whether the turn has made a plan that waits for approval."""


class ChatInterrupted(CamelRecord):
    """A turn was stopped on request; `queue` holds the ids that still wait."""

    chat_id: str
    """Id of the chat."""
    interrupted: bool
    """Whether a turn was running."""
    queue: list[str] = []
    """Ids of the messages that still wait."""


def _list_or_empty(value: object) -> object:
    """Return a list unchanged; other servers send other shapes, which count as empty."""
    return cast("list[object]", value) if isinstance(value, list) else []


HookNames = Annotated[list[str], BeforeValidator(_list_or_empty)]


class HooksChanged(CamelRecord):
    """Payload of the `hooks.*` types: names of the hooks that run, and that succeeded.

    `output` is what a hook printed since the last `hooks.progress`; `error` says why one failed.
    """

    running: HookNames = []
    """Names of the hooks that run."""
    completed: HookNames = []
    """Names of the hooks that succeeded."""
    hook_name: str | None = None
    """Hook that the event is about."""
    output: str | None = None
    """What the hook printed since the last event."""
    error: str | None = None
    """Why the hook failed."""


class PreviewChanged(CamelRecord):
    """All previews of the workspace."""

    previews: list[Preview]
    """All previews of the replica."""


class ErrorEvent(CamelRecord):
    """Something went wrong that a person should know."""

    code: str
    """Reason, for programs."""
    message: str
    """Message for a person."""
    details: Any = None
    """Further details."""


Payload = (
    EngineReady
    | EngineStatusChanged
    | ReposChanged
    | ChatChanged
    | ChatDeleted
    | TurnAccepted
    | TurnStarted
    | TurnDelta
    | TurnCompleted
    | ChatInterrupted
    | HooksChanged
    | PreviewChanged
    | ErrorEvent
)

PAYLOADS: dict[EventType, type[Payload]] = {
    EventType.ENGINE_READY: EngineReady,
    EventType.ENGINE_STATUS_CHANGED: EngineStatusChanged,
    EventType.REPO_DISCOVERED: ReposChanged,
    EventType.REPO_STATUS_CHANGED: ReposChanged,
    EventType.CHAT_CREATED: ChatChanged,
    EventType.CHAT_UPDATED: ChatChanged,
    EventType.CHAT_DELETED: ChatDeleted,
    EventType.CHAT_TURN_ACCEPTED: TurnAccepted,
    EventType.CHAT_TURN_STARTED: TurnStarted,
    EventType.CHAT_TURN_DELTA: TurnDelta,
    EventType.CHAT_TURN_COMPLETED: TurnCompleted,
    EventType.CHAT_INTERRUPTED: ChatInterrupted,
    EventType.HOOKS_STARTED: HooksChanged,
    EventType.HOOKS_PROGRESS: HooksChanged,
    EventType.HOOKS_COMPLETED: HooksChanged,
    EventType.HOOKS_FAILED: HooksChanged,
    EventType.HOOKS_STATUS: HooksChanged,
    EventType.PREVIEW_CHANGED: PreviewChanged,
    EventType.ERROR: ErrorEvent,
}
"""The payload model of each type."""


def payload_of(event: Event) -> Payload | None:
    """Return the typed payload of an event, or None when its type or shape is unknown."""
    try:
        model = PAYLOADS[EventType(event.type)]
        return model.model_validate(event.payload)
    except (ValueError, ValidationError):
        return None
