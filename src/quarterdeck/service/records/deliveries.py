"""Calls of webhooks that were not taken yet, as rows. The row's id is the call's id in every try."""

from dataclasses import dataclass, fields

from sqlalchemy import Connection, delete, func, insert, select, update

from quarterdeck.service.db.tables import webhook_deliveries


@dataclass(frozen=True)
class Delivery:
    """One call; `body` is its raw text, the same in every try."""

    id: str
    organization_id: str
    home_id: str | None
    url: str
    body: str
    attempts: int
    next_at: str
    created_at: str


_columns = [webhook_deliveries.c[field.name] for field in fields(Delivery)]


def add_delivery(connection: Connection, delivery: Delivery) -> None:
    """Stores a call to be made."""
    connection.execute(insert(webhook_deliveries).values(**vars(delivery)))


def due_deliveries(connection: Connection, home_id: str, now: str, limit: int) -> list[Delivery]:
    """A home's calls whose time has come, the oldest first."""
    statement = (
        select(*_columns)
        .where(webhook_deliveries.c.home_id == home_id, webhook_deliveries.c.next_at <= now)
        .order_by(webhook_deliveries.c.created_at, webhook_deliveries.c.id)
        .limit(limit)
    )
    return [Delivery(*row) for row in connection.execute(statement)]


def next_moment(connection: Connection, home_id: str, after: str) -> str | None:
    """When a home's next call is due that is not due yet; None when there is none."""
    statement = select(func.min(webhook_deliveries.c.next_at)).where(
        webhook_deliveries.c.home_id == home_id, webhook_deliveries.c.next_at > after
    )
    return connection.execute(statement).scalar()


def put_off(connection: Connection, delivery_id: str, attempts: int, next_at: str) -> None:
    """Notes a try that failed."""
    connection.execute(
        update(webhook_deliveries)
        .where(webhook_deliveries.c.id == delivery_id)
        .values(attempts=attempts, next_at=next_at)
    )


def drop_delivery(connection: Connection, delivery_id: str) -> None:
    """The call was taken, or given up."""
    connection.execute(delete(webhook_deliveries).where(webhook_deliveries.c.id == delivery_id))
