"""The services that share the database, as rows. Moments are the server's: hosts' clocks differ."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, insert, select, update

from quarterdeck.service.db.tables import services, webhook_deliveries, workspaces
from quarterdeck.service.moments import moment_text
from quarterdeck.wire.base import utc_now


@dataclass(frozen=True)
class ServiceRow:
    """Where the service of a home was reached when it was last seen; `alive` if that is not long
    ago."""

    home_id: str
    url: str
    seen_at: str
    alive: bool


@dataclass(frozen=True)
class Owner:
    """Who has a workspace: the home of its sandbox and the organization."""

    home_id: str | None
    organization_id: str


def announce(connection: Connection, home_id: str, url: str) -> None:
    """The service of a home is there."""
    values = {"url": url, "seen_at": moment_text(_now(connection))}
    mine = services.c.home_id == home_id
    if not connection.execute(update(services).where(mine).values(**values)).rowcount:
        connection.execute(insert(services).values(home_id=home_id, **values))


def all_services(connection: Connection, patience: timedelta) -> list[ServiceRow]:
    """Every service there ever was, in the order of their ids."""
    since = moment_text(_now(connection) - patience)
    statement = select(services).order_by(services.c.home_id)
    return [
        ServiceRow(row.home_id, row.url, row.seen_at, row.seen_at >= since)
        for row in connection.execute(statement)
    ]


def find_service(
    connection: Connection, home_id: str | None, patience: timedelta
) -> ServiceRow | None:
    """The service of a home; None when none ever told where it is."""
    found = [one for one in all_services(connection, patience) if one.home_id == home_id]
    return found[0] if found else None


def owner_of(connection: Connection, workspace_id: str) -> Owner | None:
    """Who has a workspace; None when there is no such workspace."""
    statement = select(workspaces.c.home_id, workspaces.c.organization_id)
    row = connection.execute(statement.where(workspaces.c.id == workspace_id)).first()
    return None if row is None else Owner(*row)


def take_over_deliveries(connection: Connection, home_id: str, patience: timedelta) -> int:
    """Makes calls of webhooks a home's own whose service was not seen for long; how many."""
    since = moment_text(_now(connection) - patience)
    others = select(services.c.home_id).where(services.c.seen_at >= since)
    left = webhook_deliveries.c.home_id.not_in(others) & (webhook_deliveries.c.home_id != home_id)
    done = connection.execute(update(webhook_deliveries).where(left).values(home_id=home_id))
    return done.rowcount


def server_moment(connection: Connection, seconds: float = 0) -> str:
    """The present moment of the database's host, or one so many seconds later."""
    sqlite = connection.dialect.name == "sqlite"  # is in this very process, and gives no zone
    now = utc_now() if sqlite else _now(connection)
    return moment_text(now + timedelta(seconds=seconds))


def _now(connection: Connection) -> datetime:
    return connection.execute(select(func.now())).scalar_one()
