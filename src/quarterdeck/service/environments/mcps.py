"""The MCP servers of an environment; their configuration is sealed, it may hold secrets."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environment_mcps as table
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
from quarterdeck.service.vault import Vault
from quarterdeck.wire.environment_mcps import (
    ChangeMcp,
    CreateMcp,
    EnvironmentMcp,
    McpTransport,
    checked_config,
)
from quarterdeck.wire.errors import ErrorCode


async def list_mcps(
    context: ServiceContext, caller: Caller, environment: str
) -> list[EnvironmentMcp]:
    """The environment's own servers, by name, with their configuration.

    Raises:
        ApiError: NOT_FOUND.
        StorageError: a configuration cannot be opened.
    """

    def run(connection: Connection) -> list[EnvironmentMcp]:
        rows = list_parts(connection, table, reach(connection, caller, environment))
        return [_record(context.vault, row) for row in rows]

    return await context.database.read(run)


async def add_mcp(
    context: ServiceContext, caller: Caller, environment: str, body: CreateMcp
) -> EnvironmentMcp:
    """Stores a server.

    Raises:
        ApiError: NOT_FOUND, CONFLICT for a name that is there.
    """
    mcp_id, now = str(uuid4()), moment_text(context.clock())
    values = {
        "name": body.name,
        "transport": body.transport.value,
        "config_sealed": context.vault.seal(mcp_id, json.dumps(body.config)),
        "created_at": now,
        "updated_at": now,
    }

    def run(connection: Connection) -> EnvironmentMcp:
        environment_id = reach(connection, caller, environment)
        own = {"organization_id": caller.organization_id, "environment_id": environment_id}
        add_part(connection, table, id=mcp_id, **own, **values)
        return _record(context.vault, _row(connection, environment_id, mcp_id))

    return await _written(context, run, body.name)


async def change_mcp(
    context: ServiceContext, caller: Caller, environment: str, id: str, body: ChangeMcp
) -> EnvironmentMcp:
    """Changes what was given of a server; the result must fit together.

    Raises:
        ApiError: as `add_mcp`; INVALID_REQUEST when transport and configuration do not fit.
    """
    given = body.model_dump(mode="json", include=body.model_fields_set)
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentMcp:
        environment_id = reach(connection, caller, environment)
        before = _record(context.vault, _row(connection, environment_id, id))
        after = before.model_copy(update=given)
        sealed = context.vault.seal(id, json.dumps(_fitting(after)))
        columns = {"name": after.name, "transport": after.transport, "config_sealed": sealed}
        change_part(connection, table, id, **columns, updated_at=now)
        return _record(context.vault, _row(connection, environment_id, id))

    return await _written(context, run, body.name)


async def remove_mcp(context: ServiceContext, caller: Caller, environment: str, id: str) -> None:
    """Removes a server.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> None:
        if not remove_part(connection, table, reach(connection, caller, environment), id):
            raise no_part("MCP server")

    await context.database.write(run)


async def _written(
    context: ServiceContext, run: Callable[[Connection], EnvironmentMcp], name: str
) -> EnvironmentMcp:
    try:
        return await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "The environment has an MCP server of this name.", f"name: {name}"
        ) from e


def _fitting(mcp: EnvironmentMcp) -> dict[str, Any]:
    try:
        return checked_config(McpTransport(mcp.transport), mcp.config)
    except ValueError as e:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The configuration does not fit the transport.",
            f"config: {e}",
        ) from e


def _row(connection: Connection, environment_id: str, id: str) -> RowMapping:
    row = find_part(connection, table, environment_id, id)
    if row is None:
        raise no_part("MCP server")
    return row


def _record(vault: Vault, row: RowMapping) -> EnvironmentMcp:
    config = json.loads(vault.unseal(row["id"], row["config_sealed"]))
    columns = {name: value for name, value in row.items() if name != "config_sealed"}
    return EnvironmentMcp.model_validate({**columns, "config": config})
