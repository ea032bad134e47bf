"""The calls to a replica's `webhook_url` (docs/interface.md 9), stored with their data.

| type | when | data |
|---|---|---|
| `replica.ready` | it became active | |
| `replica.turn_completed` | a turn is over | `chat_id`, `message_id`, `is_complete` |
| `replica.error` | it failed | `error` |
| `replica.deleted` | it was deleted | |
"""

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.notifications.rows import WebhookDelivery, add_delivery
from quarterdeck.service.replicas.record import replica_record
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import Replica, WorkspaceStatus
from quarterdeck.wire.webhooks import WebhookType

REPORTED = frozenset((EventType.CHAT_TURN_COMPLETED, EventType.ENGINE_STATUS_CHANGED))
"""The events of the log that may cause a webhook call."""


def store_calls(
    connection: Connection, workspace_id: str, events: Sequence[NewEvent], now: str
) -> None:
    """Store the calls for events that are being appended. Cheap when there are none."""
    relevant = [event for event in events if event.type in REPORTED]
    if not relevant:
        return
    row = find_workspace(connection, workspace_id)
    if row is None or row.webhook_url is None:
        return
    for event in relevant:
        call = _call_for(row, event)
        if call is not None:
            _store(connection, row, *call, now)


def store_deleted(connection: Connection, row: WorkspaceRow, now: str) -> None:
    """Store the call for a replica that is being deleted."""
    if row.webhook_url is not None:
        _store(connection, row, WebhookType.DELETED, {}, now)


def _call_for(row: WorkspaceRow, event: NewEvent) -> tuple[WebhookType, dict[str, Any]] | None:
    """Return the type and data of the call; None for an event without a call."""
    payload = event.payload
    if event.type == EventType.CHAT_TURN_COMPLETED:
        data = {
            "chat_id": payload.get("chatId"),
            "message_id": payload.get("messageId"),
            "is_complete": payload.get("isComplete"),
        }
        return WebhookType.TURN_COMPLETED, data
    # A state that an engine reports counts only when it matches the row.
    match payload.get("workspaceStatus"):
        case WorkspaceStatus.ACTIVE if row.status == WorkspaceStatus.ACTIVE:
            return WebhookType.READY, {}
        case WorkspaceStatus.ERROR if row.status == WorkspaceStatus.ERROR:
            return WebhookType.ERROR, {"error": row.error}
        case _:
            return None


def _store(
    connection: Connection, row: WorkspaceRow, type: WebhookType, data: dict[str, Any], now: str
) -> None:
    delivery_id = str(uuid4())
    record = Replica.model_validate(replica_record(row))
    # The turn's end is reported before the chat has its result.
    chats = {"plan_ready", "asking", "working", "turn_failed"}
    replica = record.model_dump(mode="json", exclude=chats)
    body = {"id": delivery_id, "type": type, "created_at": now, "replica": replica, "data": data}
    add_delivery(
        connection,
        WebhookDelivery(
            delivery_id,
            row.organization_id,
            row.home_id,
            row.webhook_url or "",
            json.dumps(body),
            0,
            now,
            now,
        ),
    )
