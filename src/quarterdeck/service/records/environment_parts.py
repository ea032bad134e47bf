"""What environments carry, as rows: variables, files, skills and MCP servers alike."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, delete, insert, select, update

from quarterdeck.service.db.tables import (
    environment_files,
    environment_mcps,
    environment_skills,
    environment_variables,
)
from quarterdeck.service.records.warm_generations import environment_changed

# What orders each kind in a list.
_ORDER = {
    environment_variables: environment_variables.c.key,
    environment_files: environment_files.c.path,
    environment_skills: environment_skills.c.name,
    environment_mcps: environment_mcps.c.name,
}


def list_parts(connection: Connection, table: Table, environment_id: str) -> Sequence[RowMapping]:
    """Every part of one kind, ordered by what people know it by."""
    statement = (
        select(table)
        .where(table.c.environment_id == environment_id)
        .order_by(_ORDER[table], table.c.id)
    )
    return connection.execute(statement).mappings().all()


def find_part(
    connection: Connection, table: Table, environment_id: str, part_id: str
) -> RowMapping | None:
    """One part of an environment."""
    statement = select(table).where(table.c.environment_id == environment_id, table.c.id == part_id)
    return connection.execute(statement).mappings().first()


def add_part(connection: Connection, table: Table, **values: Any) -> None:
    """Stores a part.

    Raises:
        IntegrityError: the environment has one like it.
    """
    connection.execute(insert(table).values(**values))
    environment_changed(connection, values["environment_id"])


def change_part(connection: Connection, table: Table, part_id: str, **values: Any) -> None:
    """Sets columns of a part.

    Raises:
        IntegrityError: the environment has another one like it.
    """
    changed = update(table).where(table.c.id == part_id).values(**values)
    of = connection.execute(changed.returning(table.c.environment_id)).scalar()
    if of is not None:
        environment_changed(connection, of)


def remove_part(connection: Connection, table: Table, environment_id: str, part_id: str) -> bool:
    """Removes a part; False when there is none."""
    done = connection.execute(
        delete(table).where(table.c.environment_id == environment_id, table.c.id == part_id)
    )
    if done.rowcount:
        environment_changed(connection, environment_id)
    return done.rowcount > 0
