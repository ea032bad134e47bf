"""Changing and removing environments. The global one is neither changed nor removed."""

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.access import reach_layers
from quarterdeck.service.environments.bindings import (
    LOCKED_BY_SOURCE,
    SOURCE,
    check_binding,
    locked,
    refused,
)
from quarterdeck.service.environments.creating import name_taken
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.automations import names_using
from quarterdeck.service.records.environments import (
    change_environment_row,
    count_with_source,
    find_environment,
    remove_environment_row,
    users_of,
)
from quarterdeck.wire.environments import ChangeEnvironment, Environment
from quarterdeck.wire.errors import ErrorCode

NAMED = 3
"""Replicas that a refusal names at most."""


async def change_environment(
    context: ServiceContext, caller: Caller, reference: str, body: ChangeEnvironment
) -> Environment:
    """Changes what was given.

    Raises:
        ApiError: NOT_FOUND; INVALID_REQUEST for the global one, for a locked field and for a
            reference to nothing; CONFLICT for a name that the scope has.
    """
    given = body.model_dump(mode="json", include=body.model_fields_set)
    now = moment_text(context.clock())

    def run(connection: Connection) -> Environment | None:
        own = reach_layers(connection, caller, reference)[-1]
        if own.is_global:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "The global environment cannot be changed; its parts can.",
                "environment_id",
            )
        if given.pop(SOURCE, own.source_environment_id) != own.source_environment_id:
            raise refused(SOURCE, "The source of an environment cannot be changed.")
        if own.source_environment_id is not None:
            for field in LOCKED_BY_SOURCE:
                if field in given:
                    raise locked(field)
        bound = {"repository_id": own.repository_id, "repository_set_id": own.repository_set_id}
        check_binding(
            connection,
            caller.organization_id,
            **{field: given.get(field, before) for field, before in bound.items()},
        )
        change_environment_row(connection, own.id, **given, updated_at=now)
        return find_environment(connection, caller.organization_id, caller.user_id, own.id)

    try:
        environment = await context.database.write(run)
    except IntegrityError as e:
        raise name_taken(body.name) from e
    assert environment is not None  # it was reached in the same transaction
    return environment


async def remove_environment(context: ServiceContext, caller: Caller, reference: str) -> None:
    """Removes an environment with all its parts.

    Raises:
        ApiError: NOT_FOUND; CONFLICT for the global one, for one that replicas are made from, and
            for one that is the source of others.
    """

    def run(connection: Connection) -> None:
        own = reach_layers(connection, caller, reference)[-1]
        if own.is_global:
            raise ApiError(ErrorCode.CONFLICT, "The global environment cannot be deleted.")
        _check_unused(connection, own.id)
        remove_environment_row(connection, own.id)

    await context.database.write(run)


def _check_unused(connection: Connection, environment_id: str) -> None:
    users = users_of(connection, environment_id, NAMED + 1)
    living = [name for name, waits in users if not waits]
    if living:
        more = " and others" if len(living) > NAMED else ""
        raise ApiError(
            ErrorCode.CONFLICT,
            "Replicas are made from this environment. Delete them first.",
            f"replicas: {', '.join(living[:NAMED])}{more}",
        )
    if users:
        raise ApiError(
            ErrorCode.CONFLICT,
            "This environment's warm pool holds prepared workspaces. Switch the pool off first.",
        )
    automated = names_using(connection, environment_id, NAMED + 1)
    if automated:
        more = " and others" if len(automated) > NAMED else ""
        raise ApiError(
            ErrorCode.CONFLICT,
            "Automations use this environment. Give them another or delete them first.",
            f"automations: {', '.join(automated[:NAMED])}{more}",
        )
    personal = count_with_source(connection, environment_id)
    if personal:
        raise ApiError(
            ErrorCode.CONFLICT,
            "Personal environments have this one as their source. Delete them first.",
            f"personal environments: {personal}",
        )
