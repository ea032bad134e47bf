"""The files of an environment."""

from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environment_files as table
from quarterdeck.service.environments.access import no_part, reach
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environment_parts import (
    add_part,
    change_part,
    find_part,
    list_parts,
    remove_part,
)
from quarterdeck.wire.environment_files import ChangeFile, CreateFile, EnvironmentFile
from quarterdeck.wire.errors import ErrorCode


async def list_files(
    context: ServiceContext, caller: Caller, environment: str
) -> list[EnvironmentFile]:
    """The environment's own files, by path.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> list[EnvironmentFile]:
        rows = list_parts(connection, table, reach(connection, caller, environment))
        return [_record(row) for row in rows]

    return await context.database.read(run)


async def add_file(
    context: ServiceContext, caller: Caller, environment: str, body: CreateFile
) -> EnvironmentFile:
    """Stores a file.

    Raises:
        ApiError: NOT_FOUND; INVALID_REQUEST when another file has the path (the contract knows no
            conflict here).
    """
    file_id, now = str(uuid4()), moment_text(context.clock())
    values: dict[str, Any] = {
        "name": body.name or body.path.rsplit("/", 1)[-1],
        "path": body.path,
        "content": body.content,
        "created_at": now,
        "updated_at": now,
    }

    def run(connection: Connection) -> EnvironmentFile:
        environment_id = reach(connection, caller, environment)
        _check_path(connection, environment_id, body.path, file_id)
        own = {"organization_id": caller.organization_id, "environment_id": environment_id}
        add_part(connection, table, id=file_id, **own, **values)
        return _record(_row(connection, environment_id, file_id))

    return await context.database.write(run)


async def change_file(
    context: ServiceContext, caller: Caller, environment: str, id: str, body: ChangeFile
) -> EnvironmentFile:
    """Changes what was given of a file.

    Raises:
        ApiError: as `add_file`.
    """
    given = body.model_dump(include=body.model_fields_set)
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentFile:
        environment_id = reach(connection, caller, environment)
        row = _row(connection, environment_id, id)
        _check_path(connection, environment_id, given.get("path", row["path"]), id)
        change_part(connection, table, id, **given, updated_at=now)
        return _record(_row(connection, environment_id, id))

    return await context.database.write(run)


async def remove_file(context: ServiceContext, caller: Caller, environment: str, id: str) -> None:
    """Removes a file; workspaces keep theirs until they start again.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> None:
        if not remove_part(connection, table, reach(connection, caller, environment), id):
            raise no_part("file")

    await context.database.write(run)


def _check_path(connection: Connection, environment_id: str, path: str, but: str) -> None:
    for row in list_parts(connection, table, environment_id):
        if row["path"] == path and row["id"] != but:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "The environment has another file with this path.",
                f"path: {path}",
            )


def _row(connection: Connection, environment_id: str, id: str) -> RowMapping:
    row = find_part(connection, table, environment_id, id)
    if row is None:
        raise no_part("file")
    return row


def _record(row: RowMapping) -> EnvironmentFile:
    return EnvironmentFile.model_validate(dict(row))
