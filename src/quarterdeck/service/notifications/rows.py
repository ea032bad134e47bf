"""Rows of notification targets, and of webhook calls that were not accepted yet."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, delete, func, insert, select, update

from quarterdeck.service.db.tables import notification_targets, webhook_deliveries
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace, replica_record
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import Replica, WebhookType, WorkspaceStatus


@dataclass(frozen=True)
class NotificationTarget:
    """A person's target in one organization."""

    id: str
    user_id: str
    url_sealed: str
    created_at: str


def put_target(connection: Connection, organization_id: str, target: NotificationTarget) -> None:
    """Store a target, replacing an earlier one."""
    remove_target(connection, organization_id, target.user_id)
    values = {"organization_id": organization_id, **vars(target)}
    connection.execute(insert(notification_targets).values(**values))


def find_target(
    connection: Connection, organization_id: str, user_id: str
) -> NotificationTarget | None:
    """Return the person's target."""
    targets = targets_of(connection, organization_id, {user_id})
    return targets[0] if targets else None


def targets_of(
    connection: Connection, organization_id: str, user_ids: set[str] | None
) -> list[NotificationTarget]:
    """Return the targets of some people, or of everybody in the organization."""
    table = notification_targets.c
    statement = select(table.id, table.user_id, table.url_sealed, table.created_at).where(
        table.organization_id == organization_id
    )
    if user_ids is not None:
        statement = statement.where(table.user_id.in_(user_ids))
    return [
        NotificationTarget(*row) for row in connection.execute(statement.order_by(table.created_at))
    ]


def remove_target(connection: Connection, organization_id: str, user_id: str) -> None:
    """Remove the person's target, if there is one."""
    table = notification_targets.c
    connection.execute(
        delete(notification_targets).where(
            table.organization_id == organization_id, table.user_id == user_id
        )
    )


@dataclass(frozen=True)
class WebhookDelivery:
    """One call; `id` and `body`, its raw text, are the same in every attempt."""

    id: str
    organization_id: str
    home_id: str | None
    user_id: str | None
    url_sealed: str
    body: str
    attempts: int
    next_at: str
    created_at: str


_columns = [webhook_deliveries.c[field.name] for field in fields(WebhookDelivery)]


def add_delivery(connection: Connection, delivery: WebhookDelivery) -> None:
    """Store a call to be made."""
    connection.execute(insert(webhook_deliveries).values(**vars(delivery)))


def due_deliveries(
    connection: Connection, home_id: str, now: str, limit: int
) -> list[WebhookDelivery]:
    """Return a home's due calls, the oldest first."""
    statement = (
        select(*_columns)
        .where(webhook_deliveries.c.home_id == home_id, webhook_deliveries.c.next_at <= now)
        .order_by(webhook_deliveries.c.created_at, webhook_deliveries.c.id)
        .limit(limit)
    )
    return [WebhookDelivery(*row) for row in connection.execute(statement)]


def next_moment(connection: Connection, home_id: str, after: str) -> str | None:
    """Return when a home's next future call is due; None when there is none."""
    statement = select(func.min(webhook_deliveries.c.next_at)).where(
        webhook_deliveries.c.home_id == home_id, webhook_deliveries.c.next_at > after
    )
    return connection.execute(statement).scalar()


def put_off(connection: Connection, delivery_id: str, attempts: int, next_at: str) -> None:
    """Note a failed attempt."""
    connection.execute(
        update(webhook_deliveries)
        .where(webhook_deliveries.c.id == delivery_id)
        .values(attempts=attempts, next_at=next_at)
    )


def drop_delivery(connection: Connection, delivery_id: str) -> None:
    """Remove a call that was accepted or given up."""
    connection.execute(delete(webhook_deliveries).where(webhook_deliveries.c.id == delivery_id))


MOST_CALLS = 100
"""Calls of one replica that wait; its engine may report ends of turns without end."""

log = logging.getLogger(__name__)

REPORTED = frozenset((EventType.CHAT_TURN_COMPLETED, EventType.ENGINE_STATUS_CHANGED))
"""The events of the log that may cause a webhook call."""


def store_calls(
    connection: Connection, workspace_id: str, events: Sequence[NewEvent], now: str
) -> None:
    """Store the calls for events that are being appended. Cheap when there are none.

    | type (docs/interface.md 9) | when | data |
    |---|---|---|
    | `replica.ready` | it became active | |
    | `replica.turn_completed` | a turn is over | `chat_id`, `message_id`, `is_complete` |
    | `replica.error` | it failed | `error` |
    | `replica.deleted` | it was deleted | |
    """
    relevant = [event for event in events if event.type in REPORTED]
    if not relevant:
        return
    row = find_workspace(connection, workspace_id)
    if row is None or row.webhook_url_sealed is None:
        return
    for event in relevant:
        call = _call_for(row, event)
        if call is not None:
            _store(connection, row, *call, now)


def store_deleted(connection: Connection, row: WorkspaceRow, now: str) -> None:
    """Store the call for a replica that is being deleted."""
    if row.webhook_url_sealed is not None:
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
    # The sealed address is of this replica alone.
    of_replica = select(webhook_deliveries.c.id).filter_by(url_sealed=row.webhook_url_sealed)
    if len(connection.execute(of_replica.limit(MOST_CALLS)).all()) == MOST_CALLS:
        log.warning("A call of the webhook of %s is dropped: too many wait", row.id)
        return
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
            row.user_id,
            row.webhook_url_sealed or "",
            json.dumps(body),
            0,
            now,
            now,
        ),
    )
