"""Environments as rows."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from quarterdeck.service.db.tables import (
    environment_files,
    environment_mcps,
    environment_skills,
    environment_variables,
    environments,
    workspaces,
)
from quarterdeck.service.records.warm_generations import environment_changed
from quarterdeck.wire.environments import GLOBAL, Environment

_sources = environments.alias("sources")


def _count(table: Table, name: str) -> ColumnElement[int]:
    counted = select(func.count()).where(table.c.environment_id == environments.c.id)
    return counted.correlate(environments).scalar_subquery().label(name)


# Statements are made once: to make one takes longer than to run it.
_visible = and_(
    environments.c.organization_id == bindparam("organization"),
    # Of no user there are none: nothing equals NULL.
    or_(environments.c.user_id.is_(None), environments.c.user_id == bindparam("user")),
)
# Every column, the counts, and of the source what is taken from it.
_records = (
    select(
        environments,
        _count(environment_variables, "variable_count"),
        _count(environment_files, "file_count"),
        _count(environment_skills, "skill_count"),
        _count(environment_mcps, "mcp_count"),
        _sources.c.repository_id.label("source_repository_id"),
        _sources.c.repository_set_id.label("source_repository_set_id"),
        _sources.c.system_prompt.label("source_system_prompt"),
    )
    .select_from(
        environments.outerjoin(_sources, _sources.c.id == environments.c.source_environment_id)
    )
    .where(_visible)
)
_ids = select(environments.c.id).where(_visible)
_is_wanted = environments.c.id == bindparam("of")
_one, _one_id = _records.where(_is_wanted), _ids.where(_is_wanted)
_global, _global_id = _records.where(environments.c.is_global), _ids.where(environments.c.is_global)
_in_order = _records.order_by(
    environments.c.is_global.desc(), environments.c.name, environments.c.id
)
_lists = {
    "org": _in_order.where(environments.c.user_id.is_(None)),
    "user": _in_order.where(environments.c.user_id.is_not(None)),
    "all": _in_order,
}


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


_TOLD_ONLY = {"name", "description", "updated_at"}
"""Columns that nothing in a workspace depends on."""


def change_environment_row(connection: Connection, environment_id: str, **values: Any) -> None:
    """Sets columns of an environment.

    Raises:
        IntegrityError: its name is taken in its scope, or what it refers to is not there.
    """
    connection.execute(
        update(environments).where(environments.c.id == environment_id).values(**values)
    )
    if not values.keys() <= _TOLD_ONLY:
        environment_changed(connection, environment_id)


def remove_environment_row(connection: Connection, environment_id: str) -> None:
    """Removes an environment with all its parts.

    Raises:
        IntegrityError: a workspace is made from it.
    """
    connection.execute(delete(environments).where(environments.c.id == environment_id))


def users_of(connection: Connection, environment_id: str, most: int) -> Sequence[tuple[str, bool]]:
    """Names of workspaces made from it, and whether each waits in a warm pool; at most so many."""
    waits = workspaces.c.warm_state.is_not(None)
    statement = (
        select(workspaces.c.name, waits.label("waits"))
        .where(workspaces.c.environment_id == environment_id)
        .order_by(waits, workspaces.c.created_at)
        .limit(most)
    )
    return [(row.name, bool(row.waits)) for row in connection.execute(statement)]


def count_with_source(connection: Connection, environment_id: str) -> int:
    """How many personal environments have it as their source."""
    statement = select(func.count()).where(environments.c.source_environment_id == environment_id)
    return connection.execute(statement).scalar_one()


def names_bound_to(connection: Connection, column: ColumnElement[Any], id: str) -> list[str]:
    """Names of the environments whose binding, a column of `environments`, is this id."""
    statement = select(environments.c.name).where(column == id).order_by(environments.c.name)
    return list(connection.execute(statement).scalars())


def find_environment_id(
    connection: Connection, organization_id: str, user_id: str | None, reference: str
) -> str | None:
    """The id of the environment that `find_environment` finds."""
    statement = _global_id if reference == GLOBAL else _one_id
    wanted = {"organization": organization_id, "user": user_id, "of": reference}
    return connection.execute(statement, wanted).scalar()


def find_environment(
    connection: Connection, organization_id: str, user_id: str | None, reference: str
) -> Environment | None:
    """The environment of an id, or the global one for `global`, if the caller may see it."""
    statement = _global if reference == GLOBAL else _one
    wanted = {"organization": organization_id, "user": user_id, "of": reference}
    row = connection.execute(statement, wanted).mappings().first()
    return None if row is None else _as_environment(row)


def list_environments(
    connection: Connection, organization_id: str, user_id: str | None, scope: str
) -> list[Environment]:
    """Environments of a scope (`org`, `user`, `all`), the global one first, then by name."""
    wanted = {"organization": organization_id, "user": user_id}
    rows = connection.execute(_lists[scope], wanted).mappings()
    return [_as_environment(row) for row in rows]


def _as_environment(row: RowMapping) -> Environment:
    values = dict(row)
    for field in ("repository_id", "repository_set_id", "system_prompt"):
        taken = values.pop(f"source_{field}")
        if values["source_environment_id"] is not None:
            values[field] = taken
    return Environment.model_validate(values)
