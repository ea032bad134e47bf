"""The per-replica event stream (specification, Events; INTERFACE 5).

`Event` is the envelope with its payload left as data; `payload_of` reads the payload of a known
type. An unknown type, or a payload of another shape than expected, is never an exception: the
reader gets `None` and the envelope keeps everything.
"""

from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from quarterdeck.wire.base import CamelRecord, Record, Timestamp
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.history import AgentEvent
from quarterdeck.wire.replicas import GitDiff


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


class Event(Record):
    """The envelope. `id` is unique; the stream's own `id:` line is the index in the log."""

    id: str
    ts: Timestamp
    type: str
    payload: dict[str, Any] = {}


class EngineReady(CamelRecord):
    """Engine initialization is complete."""

    version: str


class EngineStatus(CamelRecord):
    """Counts that the engine reports of itself."""

    uptime_seconds: int = 0
    active_sse_clients: int = 0
    chats_total: int = 0
    chats_processing: int = 0
    repos_total: int = 0
    hooks_running: bool = False


class EngineStatusChanged(CamelRecord):
    """`workspaceStatus` is set when the workspace's state changed."""

    status: EngineStatus | None = None
    workspace_status: str | None = None
    error: str | None = None


class EventRepository(CamelRecord):
    """A repository as events carry it."""

    name: str
    path: str
    default_branch: str | None = None
    current_branch: str | None = None
    pr_urls: list[str] = []
    git_diff: GitDiff | None = None
    start_hooks_completed: bool = False
    untracked: list[str] = []
    """Untracked files (own field), repository-relative, the first hundred."""


class ReposChanged(CamelRecord):
    """Payload of `repo.discovered` and `repo.status.changed`: all repositories, each time."""

    repos: list[EventRepository]


class ChatChanged(CamelRecord):
    """Payload of `chat.created` and `chat.updated`.

    When the queue was changed by hand, `queue` holds what waits, first to run first, and
    `canceledMessageIds` what was taken out (own fields).
    """

    chat: EventChat
    client_request_id: str | None = None
    queue: list[str] | None = None
    canceled_message_ids: list[str] | None = None


class ChatDeleted(CamelRecord):
    """A chat is gone."""

    chat_id: str


class TurnAccepted(CamelRecord):
    """A message is durable; `queued` with its place when a turn is running."""

    chat_id: str
    message_id: str
    queued: bool = False
    position: int | None = None


class TurnStarted(CamelRecord):
    """The agent has the message."""

    chat_id: str
    message_id: str


class TurnDelta(CamelRecord):
    """One agent event of a turn."""

    chat_id: str
    message_id: str | None = None
    event: AgentEvent


class TurnCompleted(CamelRecord):
    """The turn is over; `isComplete` false means interrupted or failed.

    `planReady` (own field): it has made a plan, which waits for the person's word now.
    """

    chat_id: str
    message_id: str
    is_complete: bool
    processing: bool = False
    plan_ready: bool | None = None


class ChatInterrupted(CamelRecord):
    """A turn was stopped on request; `queue` holds the ids that still wait."""

    chat_id: str
    interrupted: bool
    queue: list[str] = []


class HooksChanged(CamelRecord):
    """Payload of the `hooks.*` types: names of the hooks that run, and that succeeded.

    `output` is what a hook printed since the last `hooks.progress`; `error` says why one failed.
    """

    running: Any = None
    completed: Any = None
    hook_name: str | None = None
    output: str | None = None
    error: str | None = None


class Preview(CamelRecord):
    """A port of the workspace that can be looked at."""

    port: int
    public_url: str
    created_at: Timestamp


class PreviewChanged(CamelRecord):
    """All previews of the workspace."""

    previews: list[Preview]


class ErrorEvent(CamelRecord):
    """Something went wrong that a person should know."""

    code: str
    message: str
    details: Any = None


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
    """The typed payload of an event, or None when its type or shape is not known here."""
    try:
        model = PAYLOADS[EventType(event.type)]
        return model.model_validate(event.payload)
    except (ValueError, ValidationError):
        return None
