"""The variables of an environment; values are sealed before they reach the database."""

from collections.abc import Callable, Sequence
from uuid import uuid4

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environment_variables as table
from quarterdeck.service.environments.access import no_part, reach, reach_layers
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environment_layers import Layer
from quarterdeck.service.records.environment_parts import (
    add_part,
    change_part,
    find_part,
    list_parts,
    remove_part,
)
from quarterdeck.service.vault import Vault
from quarterdeck.wire.environment_variables import (
    RESERVED_KEYS,
    ChangeVariable,
    CreateVariable,
    EnvironmentVariable,
)
from quarterdeck.wire.errors import ErrorCode


async def list_variables(
    context: ServiceContext, caller: Caller, environment: str
) -> list[EnvironmentVariable]:
    """The environment's own variables, by key, with their values.

    Raises:
        ApiError: NOT_FOUND.
        StorageError: a value cannot be opened.
    """

    def run(connection: Connection) -> list[EnvironmentVariable]:
        rows = list_parts(connection, table, reach(connection, caller, environment))
        return [_record(context.vault, row) for row in rows]

    return await context.database.read(run)


async def add_variable(
    context: ServiceContext, caller: Caller, environment: str, body: CreateVariable
) -> EnvironmentVariable:
    """Stores a variable.

    Raises:
        ApiError: NOT_FOUND, CONFLICT for a key that is there, FORBIDDEN for one that is inherited
            and may not be overridden, INVALID_REQUEST for one that the sandbox sets itself.
    """
    variable_id, now = str(uuid4()), moment_text(context.clock())
    values = {
        "key": body.key,
        "value_sealed": context.vault.seal(variable_id, body.value),
        "personal_override_allowed": body.personal_override_allowed,
        "created_at": now,
        "updated_at": now,
    }

    def run(connection: Connection) -> EnvironmentVariable:
        layers = reach_layers(connection, caller, environment)
        _check_free(body.key)
        _check_override(connection, layers, body.key)
        own = {"organization_id": caller.organization_id, "environment_id": layers[-1].id}
        add_part(connection, table, id=variable_id, **own, **values)
        return _stored(connection, context.vault, layers[-1].id, variable_id)

    return await _written(context, run, body.key)


async def change_variable(
    context: ServiceContext, caller: Caller, environment: str, id: str, body: ChangeVariable
) -> EnvironmentVariable:
    """Changes what was given of a variable.

    Raises:
        ApiError: as `add_variable`.
    """
    given = body.model_dump(include=body.model_fields_set)
    if "value" in given:
        given["value_sealed"] = context.vault.seal(id, given.pop("value"))
    now = moment_text(context.clock())

    def run(connection: Connection) -> EnvironmentVariable:
        layers = reach_layers(connection, caller, environment)
        row = _row(connection, layers[-1].id, id)
        key = given.get("key", row["key"])
        _check_free(key)
        _check_override(connection, layers, key)
        change_part(connection, table, id, **given, updated_at=now)
        return _stored(connection, context.vault, layers[-1].id, id)

    return await _written(context, run, body.key)


async def remove_variable(
    context: ServiceContext, caller: Caller, environment: str, id: str
) -> None:
    """Removes a variable.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> None:
        if not remove_part(connection, table, reach(connection, caller, environment), id):
            raise no_part("variable")

    await context.database.write(run)


async def _written(
    context: ServiceContext, run: Callable[[Connection], EnvironmentVariable], key: str
) -> EnvironmentVariable:
    try:
        return await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "The environment has a variable of this key.", f"key: {key}"
        ) from e


def _check_free(key: str) -> None:
    if key in RESERVED_KEYS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"The sandbox sets {key} itself; a variable of this key would have no effect.",
            f"key: {key}",
        )


def _check_override(connection: Connection, layers: Sequence[Layer], key: str) -> None:
    """Only a personal environment with a source is bound by what it inherits."""
    own = layers[-1]
    if own.user_id is None or own.source_environment_id is None:
        return
    for below in reversed(layers[:-1]):
        inherited = [row for row in list_parts(connection, table, below.id) if row["key"] == key]
        if inherited and not inherited[0]["personal_override_allowed"]:
            raise ApiError(
                ErrorCode.FORBIDDEN,
                f"The variable is inherited from {below.name}, which does not let personal "
                "environments override it.",
                f"key: {key}",
            )
        if inherited:
            return


def _row(connection: Connection, environment_id: str, id: str) -> RowMapping:
    row = find_part(connection, table, environment_id, id)
    if row is None:
        raise no_part("variable")
    return row


def _stored(
    connection: Connection, vault: Vault, environment_id: str, id: str
) -> EnvironmentVariable:
    return _record(vault, _row(connection, environment_id, id))


def _record(vault: Vault, row: RowMapping) -> EnvironmentVariable:
    open_value = vault.unseal(row["id"], row["value_sealed"])
    columns = {name: value for name, value in row.items() if name != "value_sealed"}
    return EnvironmentVariable.model_validate({**columns, "value": open_value})
