"""Rows of services and of received webhooks."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select, update

from quarterdeck.sandboxes.port import PROCESS
from quarterdeck.service.db.tables import services, webhook_deliveries, workspaces
from quarterdeck.service.db.tables import webhook_receipts as table
from quarterdeck.service.formats import moment_text
from quarterdeck.wire.base import utc_now


@dataclass(frozen=True)
class ServiceRow:
    """The last URL of a home's service; `alive` if it was seen recently."""

    home_id: str
    url: str
    seen_at: str
    alive: bool


@dataclass(frozen=True)
class Owner:
    """The owner of a workspace: the home of its sandbox and the organization.

    `stays`: no other service takes it over.
    """

    home_id: str | None
    organization_id: str
    stays: bool


def announce(connection: Connection, home_id: str, url: str) -> None:
    """Note that the service of a home is alive."""
    values = {"url": url, "seen_at": moment_text(_now(connection))}
    mine = services.c.home_id == home_id
    if not connection.execute(update(services).where(mine).values(**values)).rowcount:
        connection.execute(insert(services).values(home_id=home_id, **values))


def all_services(connection: Connection, max_age: timedelta) -> list[ServiceRow]:
    """Return every known service, in the order of their ids."""
    since = moment_text(_now(connection) - max_age)
    statement = select(services).order_by(services.c.home_id)
    return [
        ServiceRow(row.home_id, row.url, row.seen_at, row.seen_at >= since)
        for row in connection.execute(statement)
    ]


def find_service(
    connection: Connection, home_id: str | None, max_age: timedelta
) -> ServiceRow | None:
    """Return the service of a home; None when it never announced itself."""
    services = [
        service for service in all_services(connection, max_age) if service.home_id == home_id
    ]
    return services[0] if services else None


def drop_service(connection: Connection, home_id: str) -> None:
    """Remove the service of a lost home that has no workspace any more.

    If the home comes back, its service announces itself again.
    """
    left = select(workspaces.c.id).where(workspaces.c.home_id == home_id).exists()
    connection.execute(delete(services).where(services.c.home_id == home_id, ~left))


def owner_of(connection: Connection, workspace_id: str) -> Owner | None:
    """Return the owner of a workspace; None when there is no such workspace."""
    stays = workspaces.c.driver == PROCESS
    statement = select(workspaces.c.home_id, workspaces.c.organization_id, stays)
    row = connection.execute(statement.where(workspaces.c.id == workspace_id)).first()
    return None if row is None else Owner(*row)


def take_over_deliveries(connection: Connection, home_id: str, max_age: timedelta) -> int:
    """Assign webhook calls of services that were not seen for long to a home; return how many."""
    since = moment_text(_now(connection) - max_age)
    others = select(services.c.home_id).where(services.c.seen_at >= since)
    left = webhook_deliveries.c.home_id.not_in(others) & (webhook_deliveries.c.home_id != home_id)
    done = connection.execute(update(webhook_deliveries).where(left).values(home_id=home_id))
    return done.rowcount


def server_moment(connection: Connection, seconds: float = 0) -> str:
    """Return the current time of the database's host, or one some seconds later."""
    return moment_text(_now(connection) + timedelta(seconds=seconds))


def _now(connection: Connection) -> datetime:
    if connection.dialect.name == "sqlite":  # is in this process, and returns no zone
        return utc_now()
    return connection.execute(select(func.now())).scalar_one()


def add_receipt(connection: Connection, digest: str, now: str) -> None:
    """Note a webhook.

    Raises:
        IntegrityError: it was accepted before.
    """
    connection.execute(insert(table).values(digest=digest, received_at=now))


def has_receipt(connection: Connection, digest: str) -> bool:
    """Return whether a webhook was accepted before."""
    return (
        connection.execute(select(table.c.digest).where(table.c.digest == digest)).first()
        is not None
    )


def forget_receipts(connection: Connection, before: str) -> int:
    """Remove receipts older than a moment; return how many."""
    return connection.execute(delete(table).where(table.c.received_at < before)).rowcount
