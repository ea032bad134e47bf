"""The calls that a replica's `webhook_url` receives (docs/interface.md 9)."""

from enum import StrEnum

from quarterdeck.wire.base import Id, Record, Timestamp
from quarterdeck.wire.replicas import Replica


class WebhookType(StrEnum):
    """Types of calls."""

    READY = "replica.ready"
    TURN_COMPLETED = "replica.turn_completed"
    ERROR = "replica.error"
    DELETED = "replica.deleted"


class WebhookCall(Record):
    """Body of a call. `type` names the shape of `data`."""

    id: Id
    """Id of the call; a repeated delivery has the same one."""
    type: WebhookType
    """What happened."""
    created_at: Timestamp
    """When it happened."""
    replica: Replica
    """The replica at that time."""
    data: Record
    """Details of what happened."""


class NoWebhookData(Record):
    """Empty: nothing but the type is known of it."""


class TurnCompletedData(Record):
    """A turn ended."""

    chat_id: Id
    """Chat of the turn."""
    message_id: Id
    """Message that the turn answered."""
    is_complete: bool
    """False when the turn was interrupted or failed."""


class ReplicaErrorData(Record):
    """The replica changed to the state `error`."""

    error: str | None = None
    """Reason, for a person."""


WEBHOOK_DATA: dict[WebhookType, type[Record]] = {
    WebhookType.READY: NoWebhookData,
    WebhookType.TURN_COMPLETED: TurnCompletedData,
    WebhookType.ERROR: ReplicaErrorData,
    WebhookType.DELETED: NoWebhookData,
}
"""The model of `data` for each type."""
