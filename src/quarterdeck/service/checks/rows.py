"""Rows of checks."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from quarterdeck.service.db.tables import automation_checks
from quarterdeck.service.hosts.settings import HOST_B
from quarterdeck.service.system_rows import server_moment

table = automation_checks

OPEN, REPORTED, SUPERSEDED, ABANDONED = "open", "reported", "superseded", "abandoned"
"""The states of a check."""


def check_of(connection: Connection, execution_id: str) -> RowMapping | None:
    """Return the check of a run; None when it has none."""
    statement = select(table).where(table.c.execution_id == execution_id)
    return connection.execute(statement).mappings().first()


def find_check(connection: Connection, check_id: str) -> RowMapping | None:
    """Return the row of an id."""
    return connection.execute(select(table).where(table.c.id == check_id)).mappings().first()


def checks_named(
    connection: Connection, organization_id: str, check_run_id: str
) -> Sequence[RowMapping]:
    """Return the checks that agents know by an id: two hosts may use the same."""
    statement = select(table).where(
        table.c.organization_id == organization_id,
        table.c.check_run_id == check_run_id,
        table.c.execution_id.is_not(None),
    )
    return connection.execute(statement).mappings().all()


def newest_of(connection: Connection, subject: str) -> Sequence[RowMapping]:
    """Return the checks of a subject that no later run has superseded: one or none."""
    statement = select(table).where(table.c.subject == subject, table.c.superseded.is_(False))
    return connection.execute(statement).mappings().all()


def open_of_automation(connection: Connection, automation_id: str) -> Sequence[RowMapping]:
    """Return the checks of an automation's runs that wait for their verdict."""
    statement = select(table).where(table.c.automation_id == automation_id, table.c.status == OPEN)
    return connection.execute(statement).mappings().all()


def shares_its_place(connection: Connection, row: RowMapping) -> bool:
    """Return whether the check that superseded one is for the same commit under the same name."""
    statement = select(table.c.id).where(
        table.c.subject == row["subject"],
        table.c.superseded.is_(False),
        table.c.host == row["host"],
        table.c.head_sha == row["head_sha"],
        table.c.name == row["name"],
    )
    return connection.execute(statement).first() is not None


def add_check(connection: Connection, **values: Any) -> None:
    """Store a check."""
    connection.execute(insert(table).values(**values))


def change_check(connection: Connection, check_id: str, **values: Any) -> None:
    """Set columns; nothing happens when it was deleted."""
    connection.execute(update(table).where(table.c.id == check_id).values(**values))


def held_elsewhere(connection: Connection, home_id: str) -> ColumnElement[bool]:
    """Return the condition that another home's service is reporting a check now."""
    others = table.c.held_by.is_not(None) & (table.c.held_by != home_id)
    return others & (table.c.held_until > server_moment(connection))


def is_held(connection: Connection, row: RowMapping, home_id: str) -> bool:
    """Return whether another home's service is reporting a check, or one in the same place."""
    same = table.c.id == row["id"]
    place = (table.c.host, table.c.repository, table.c.head_sha, table.c.name)
    shared = and_(table.c.host == HOST_B, *(column == row[column.name] for column in place))
    statement = select(table.c.id).where(same | shared, held_elsewhere(connection, home_id))
    return connection.execute(statement).first() is not None


def due_checks(connection: Connection, home_id: str, now: str, limit: int) -> list[str]:
    """Return the ids of checks to be reported to their host, the longest due first.

    Checks that another home's service is reporting are left to it.
    """
    statement = (
        select(table.c.id)
        .where(table.c.next_at <= now, ~held_elsewhere(connection, home_id))
        .order_by(table.c.next_at, table.c.opened_at, table.c.id)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def next_due_check(connection: Connection, after: str) -> str | None:
    """Return when the next check that is not due yet is to be reported."""
    statement = select(func.min(table.c.next_at)).where(table.c.next_at > after)
    return connection.execute(statement).scalar()


def drop_settled(connection: Connection) -> None:
    """Remove checks without a run that have nothing more to report."""
    connection.execute(
        delete(table).where(table.c.execution_id.is_(None), table.c.next_at.is_(None))
    )
