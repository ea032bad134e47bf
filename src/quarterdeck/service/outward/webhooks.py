"""The calls that a replica's `webhook_url` gets (INTERFACE 9), stored with what they tell.

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

from quarterdeck.service.records.deliveries import Delivery, add_delivery
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.workspaces import WorkspaceRow, find_workspace
from quarterdeck.service.replicas.record import replica_record
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import Replica, WorkspaceStatus

TOLD = frozenset((EventType.CHAT_TURN_COMPLETED, EventType.ENGINE_STATUS_CHANGED))
"""The events of the log of which a webhook may hear."""


def store_calls(
    connection: Connection, workspace_id: str, events: Sequence[NewEvent], now: str
) -> None:
    """Stores the calls for events that are just being appended. Cheap when there are none."""
    told = [event for event in events if event.type in TOLD]
    if not told:
        return
    row = find_workspace(connection, workspace_id)
    if row is None or row.webhook_url is None:
        return
    for event in told:
        call = _call_for(row, event)
        if call is not None:
            _store(connection, row, *call, now)


def store_deleted(connection: Connection, row: WorkspaceRow, now: str) -> None:
    """Stores the call for a replica that is just being deleted."""
    if row.webhook_url is not None:
        _store(connection, row, "replica.deleted", {}, now)


def _call_for(row: WorkspaceRow, event: NewEvent) -> tuple[str, dict[str, Any]] | None:
    """The type and data of the call; None for an event that no webhook hears of."""
    told = event.payload
    if event.type == EventType.CHAT_TURN_COMPLETED:
        data = {
            "chat_id": told.get("chatId"),
            "message_id": told.get("messageId"),
            "is_complete": told.get("isComplete"),
        }
        return "replica.turn_completed", data
    # What an engine says of the state counts only when it is true.
    match told.get("workspaceStatus"):
        case WorkspaceStatus.ACTIVE if row.status == WorkspaceStatus.ACTIVE:
            return "replica.ready", {}
        case WorkspaceStatus.ERROR if row.status == WorkspaceStatus.ERROR:
            return "replica.error", {"error": row.error}
        case _:
            return None


def _store(
    connection: Connection, row: WorkspaceRow, type: str, data: dict[str, Any], now: str
) -> None:
    delivery_id = str(uuid4())
    record = Replica.model_validate(replica_record(row))
    # The turn's end is told before the chat says what has come of it.
    replica = record.model_dump(mode="json", exclude={"plan_ready"})
    body = {"id": delivery_id, "type": type, "created_at": now, "replica": replica, "data": data}
    add_delivery(
        connection,
        Delivery(
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
