"""Environments as rows."""

from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, insert, or_, select

from quarterdeck.service.db.tables import environments
from quarterdeck.wire.environments import GLOBAL, Environment


def add_environment(connection: Connection, organization_id: str, now: str, **values: Any) -> str:
    """Stores an environment and returns its id; `values` are further columns.

    Raises:
        IntegrityError: its name is taken in its scope, or what it refers to is not there.
    """
    environment_id = str(uuid4())
    row = {"is_global": False, **values, "created_at": now, "updated_at": now}
    connection.execute(
        insert(environments).values(id=environment_id, organization_id=organization_id, **row)
    )
    return environment_id


def add_global_environment(connection: Connection, organization_id: str, now: str) -> str:
    """Stores the one environment that applies to every workspace of an organization."""
    return add_environment(connection, organization_id, now, name=GLOBAL, is_global=True)


def find_environment(
    connection: Connection, organization_id: str, user_id: str | None, reference: str
) -> Environment | None:
    """The environment of an id, or the global one for `global`, if the caller may see it."""
    named = environments.c.is_global if reference == GLOBAL else environments.c.id == reference
    statement = select(environments).where(named, _visible(organization_id, user_id))
    row = connection.execute(statement).mappings().first()
    return None if row is None else as_environment(row)


def list_environments(
    connection: Connection, organization_id: str, user_id: str | None, scope: str
) -> list[Environment]:
    """Environments of a scope (`org`, `user`, `all`), the global one first, then by name."""
    statement = (
        select(environments)
        .where(_visible(organization_id, user_id), _in_scope(scope))
        .order_by(environments.c.is_global.desc(), environments.c.name, environments.c.id)
    )
    return [as_environment(row) for row in connection.execute(statement).mappings()]


def as_environment(row: RowMapping) -> Environment:
    """The row as the contract's record."""
    return Environment.model_validate(dict(row))


def _visible(organization_id: str, user_id: str | None) -> ColumnElement[bool]:
    shared = environments.c.user_id.is_(None)
    readable = shared if user_id is None else or_(shared, environments.c.user_id == user_id)
    return and_(environments.c.organization_id == organization_id, readable)


def _in_scope(scope: str) -> ColumnElement[bool]:
    match scope:
        case "org":
            return environments.c.user_id.is_(None)
        case "user":
            return environments.c.user_id.is_not(None)
        case _:
            return environments.c.id.is_not(None)
