"""Rows of notification targets, and of webhook calls that were not accepted yet."""

from dataclasses import dataclass, fields

from sqlalchemy import Connection, delete, func, insert, select, update

from quarterdeck.service.db.tables import notification_targets, webhook_deliveries


@dataclass(frozen=True)
class NotificationTarget:
    """A person's target in one organization."""

    id: str
    url_sealed: str
    created_at: str


def put_target(
    connection: Connection, organization_id: str, user_id: str, target: NotificationTarget
) -> None:
    """Store a target, replacing an earlier one."""
    remove_target(connection, organization_id, user_id)
    values = {"organization_id": organization_id, "user_id": user_id, **vars(target)}
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
    statement = select(table.id, table.url_sealed, table.created_at).where(
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
    url: str
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
