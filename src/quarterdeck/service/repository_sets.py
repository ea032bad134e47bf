"""Sets of repositories, and taking repositories and sets away."""

from uuid import uuid4

from sqlalchemy import ColumnElement, Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environments
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environments import names_bound_to
from quarterdeck.service.records.repositories import find_repository, remove_repository
from quarterdeck.service.records.repository_sets import (
    add_repository_set,
    find_repository_set,
    remove_repository_set,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.repositories import CreateRepositorySet, RepositorySet


async def create_repository_set(
    context: ServiceContext, caller: Caller, body: CreateRepositorySet
) -> RepositorySet:
    """Stores a set; a repository that is given twice is in it once.

    Raises:
        ApiError: CONFLICT for a name that is taken, INVALID_REQUEST for a repository that is not
            there.
    """
    set_id, now = str(uuid4()), moment_text(context.clock())
    wanted = list(dict.fromkeys(str(one) for one in body.repository_ids))

    def run(connection: Connection) -> RepositorySet | None:
        for repository_id in wanted:
            if find_repository(connection, caller.organization_id, repository_id) is None:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "No repository has this id.",
                    f"repository_ids: {repository_id}",
                )
        add_repository_set(connection, set_id, caller.organization_id, body.name, wanted, now)
        return find_repository_set(connection, caller.organization_id, set_id)

    try:
        made = await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "A repository set has this name already.", f"name: {body.name}"
        ) from e
    assert made is not None  # it was stored in the same transaction
    return made


async def delete_repository_set(context: ServiceContext, caller: Caller, set_id: str) -> None:
    """Removes a set; its repositories stay connected.

    Raises:
        ApiError: NOT_FOUND, CONFLICT while an environment is bound to it.
    """

    def run(connection: Connection) -> None:
        if find_repository_set(connection, caller.organization_id, set_id) is None:
            raise ApiError(ErrorCode.NOT_FOUND, "No repository set has this id.")
        _check_unbound(connection, environments.c.repository_set_id, set_id, "repository set")
        remove_repository_set(connection, set_id)

    await context.database.write(run)


async def disconnect_repository(
    context: ServiceContext, caller: Caller, repository_id: str
) -> None:
    """Disconnects a repository; sets lose it, workspaces that have it keep it.

    Clones in workspaces borrow the objects of its mirror. A service that starts removes the mirrors
    that nothing needs.

    Raises:
        ApiError: NOT_FOUND, CONFLICT while an environment is bound to it.
    """

    def run(connection: Connection) -> None:
        if find_repository(connection, caller.organization_id, repository_id) is None:
            raise ApiError(ErrorCode.NOT_FOUND, "No repository has this id.")
        _check_unbound(connection, environments.c.repository_id, repository_id, "repository")
        remove_repository(connection, repository_id)

    await context.database.write(run)


def _check_unbound(
    connection: Connection, column: ColumnElement[str | None], id: str, what: str
) -> None:
    bound = names_bound_to(connection, column, id)
    if bound:
        raise ApiError(
            ErrorCode.CONFLICT,
            f"Environments are bound to this {what}. Bind them to another first.",
            f"environments: {len(bound)}",
        )
