"""Create, change and remove environments. The global one is neither changed nor removed."""

import re

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.automations.rows import names_using
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environments
from quarterdeck.service.environments.rows import (
    Layer,
    add_environment,
    as_columns,
    change_environment_row,
    count_with_source,
    find_environment,
    find_environment_id,
    layers_of,
    remove_environment_row,
    users_of,
)
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import check_match, etag_of, moment_text
from quarterdeck.service.identity.service import Caller, require_admin
from quarterdeck.service.quotas import require_room
from quarterdeck.service.repositories.rows import (
    find_repository,
    find_repository_set,
    repositories_in_set,
)
from quarterdeck.wire.base import Id
from quarterdeck.wire.environments import ChangeEnvironment, CreateEnvironment, Environment
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.repositories import Repository


def reach(connection: Connection, caller: Caller, reference: str) -> str:
    """Return the id of the environment named by an id or `global`.

    Raises:
        ApiError: NOT_FOUND when there is none, or it is somebody else's.
    """
    environment_id = find_environment_id(
        connection, caller.organization_id, caller.user_id, reference
    )
    if environment_id is None:
        raise ApiError(ErrorCode.NOT_FOUND, "No environment has this id.")
    return environment_id


def reach_layers(connection: Connection, caller: Caller, reference: str) -> list[Layer]:
    """Return the layers of an environment; the last one is the environment itself."""
    environment_id = reach(connection, caller, reference)
    return layers_of(connection, caller.organization_id, environment_id)


def reach_layers_to_change(connection: Connection, caller: Caller, reference: str) -> list[Layer]:
    """Return the layers as `reach_layers` does, for a change of the environment or a part of it.

    Raises:
        ApiError: NOT_FOUND; FORBIDDEN for a shared one, except for admins.
    """
    layers = reach_layers(connection, caller, reference)
    if layers[-1].user_id is None:
        require_admin(caller, "change a shared environment")
    return layers


def reach_to_change(connection: Connection, caller: Caller, reference: str) -> str:
    """Return the id of an environment that the caller may change; raises as `reach_layers_to_change`."""
    return reach_layers_to_change(connection, caller, reference)[-1].id


SOURCE = "source_environment_id"
LOCKED_BY_SOURCE = ("repository_id", "repository_set_id", "system_prompt")


def refused(field: str, message: str) -> ApiError:
    """Return the error for a field's value."""
    return ApiError(ErrorCode.INVALID_REQUEST, message, field)


def locked(field: str) -> ApiError:
    """Return the error for a field that an environment takes from its source."""
    return refused(field, "The field is inherited from the source and cannot be set here.")


def check_binding(
    connection: Connection,
    organization_id: str,
    repository_id: Id | None,
    repository_set_id: Id | None,
) -> None:
    """Refuse a binding that does not exist, and both kinds at once.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if repository_id is not None and repository_set_id is not None:
        raise refused(
            "repository_set_id",
            "An environment is bound to a repository or to a set. Give the other one as null.",
        )
    if repository_id is not None and not find_repository(
        connection, organization_id, str(repository_id)
    ):
        raise refused("repository_id", "No repository has this id.")
    if repository_set_id is not None and not find_repository_set(
        connection, organization_id, str(repository_set_id)
    ):
        raise refused("repository_set_id", "No repository set has this id.")


def check_source(connection: Connection, caller: Caller, body: CreateEnvironment) -> None:
    """Refuse an invalid source, and fields that would be taken from it.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if body.source_environment_id is None:
        return
    if body.scope != "user":
        raise refused(SOURCE, "Only a personal environment has a source.")
    source = find_environment(
        connection, caller.organization_id, caller.user_id, str(body.source_environment_id)
    )
    if source is None:
        raise refused(SOURCE, "No environment has this id.")
    if source.user_id is not None:
        raise refused(SOURCE, "A source is a shared environment.")
    for field in LOCKED_BY_SOURCE:
        if getattr(body, field) is not None:
            raise locked(field)


async def create_environment(
    context: ServiceContext, caller: Caller, body: CreateEnvironment
) -> Environment:
    """Store an environment.

    Raises:
        ApiError: CONFLICT for a name that its scope has, INVALID_REQUEST for a missing reference,
            USER_REQUIRED for a personal one without a user, FORBIDDEN for a shared one, except for
            admins, QUOTA_REACHED.
    """
    if body.scope == "user" and caller.user_id is None:
        raise ApiError(
            ErrorCode.USER_REQUIRED, "A personal environment needs a user; this key has none."
        )
    if body.scope == "org":
        require_admin(caller, "create a shared environment")
    now = moment_text(context.clock())

    def run(connection: Connection) -> Environment | None:
        organization = caller.organization_id
        check_binding(connection, organization, body.repository_id, body.repository_set_id)
        check_source(connection, caller, body)
        user_id = caller.user_id if body.scope == "user" else None
        require_room(connection, environments, organization, user_id)
        columns = as_columns(body.model_dump(mode="json", exclude={"scope"}))
        environment_id = add_environment(connection, organization, now, user_id=user_id, **columns)
        return find_environment(connection, organization, caller.user_id, environment_id)

    try:
        environment = await context.database.write(run)
    except IntegrityError as e:
        raise name_conflict(body.name) from e
    assert environment is not None  # it was stored in the same transaction
    return environment


def name_conflict(name: str) -> ApiError:
    """Return the error for a name that another environment of the scope has."""
    return ApiError(ErrorCode.CONFLICT, "An environment has this name already.", f"name: {name}")


def repositories_for(
    connection: Connection, organization_id: str, user_id: str | None, environment_id: str
) -> list[dict[str, str]] | None:
    """Return the repositories of a new workspace, as its row stores them.

    The environment's own, or its source's: one, a set in its order, or none. None for an
    environment that does not exist, or belongs to another user.
    """
    environment = find_environment(connection, organization_id, user_id, environment_id)
    if environment is None:
        return None
    return _with_unique_names(
        [repository.model_dump(mode="json") for repository in _bound(connection, environment)]
    )


def usable_environment_id(
    connection: Connection, organization_id: str, user_id: str | None, environment_id: str
) -> str:
    """Return the id of an environment that the user may use in place of another one.

    The environment itself, or, when it is another user's, the shared environment below it: its
    source, else the global one.
    """
    layers = layers_of(connection, organization_id, environment_id)
    usable = [layer for layer in layers if layer.user_id in (None, user_id)]
    return usable[-1].id if usable else environment_id


def _with_unique_names(repositories: list[dict[str, str]]) -> list[dict[str, str]]:
    """Give each a name that is unique in the workspace: it is the name of its directory."""
    used: set[str] = set()
    for repository in repositories:
        # One that was connected by an earlier version may have a name that is not a valid
        # directory.
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", repository["name"]).lstrip("-._") or "repository"
        names = (plain, *(f"{plain}-{number}" for number in range(2, len(repositories) + 1)))
        repository["name"] = next(name for name in names if name not in used)
        used.add(repository["name"])
    return repositories


def _bound(connection: Connection, environment: Environment) -> list[Repository]:
    organization = str(environment.organization_id)
    if environment.repository_id is not None:
        repository = find_repository(connection, organization, str(environment.repository_id))
        return [] if repository is None else [repository]
    if environment.repository_set_id is not None:
        return repositories_in_set(connection, str(environment.repository_set_id))
    return []


NAMED = 3
"""Maximum number of replicas in an error message."""


async def change_environment(
    context: ServiceContext,
    caller: Caller,
    reference: str,
    body: ChangeEnvironment,
    if_match: str | None = None,
) -> Environment:
    """Change the given fields of the state that `if_match` names.

    Raises:
        ApiError: NOT_FOUND; FORBIDDEN for a shared one, except for admins; PRECONDITION_FAILED;
            INVALID_REQUEST for the global one, for a locked field and for a missing reference;
            CONFLICT for a name that the scope has.
    """
    given = body.model_dump(mode="json", include=body.model_fields_set)
    now = moment_text(context.clock())

    def run(connection: Connection) -> Environment | None:
        own = reach_layers_to_change(connection, caller, reference)[-1]
        if own.is_global:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "The global environment cannot be changed; its parts can.",
                "environment_id",
            )
        before = find_environment(connection, caller.organization_id, caller.user_id, own.id)
        assert before is not None  # it was reached in the same transaction
        check_match(if_match, lambda: environment_tag(before))
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
            **{field: given.get(field, present) for field, present in bound.items()},
        )
        change_environment_row(connection, own.id, **as_columns(given), updated_at=now)
        return find_environment(connection, caller.organization_id, caller.user_id, own.id)

    try:
        environment = await context.database.write(run)
    except IntegrityError as e:
        raise name_conflict(body.name) from e
    assert environment is not None  # it was reached in the same transaction
    return environment


def environment_tag(environment: Environment) -> str:
    """Return the entity tag of an environment."""
    return etag_of(environment, ChangeEnvironment.model_fields)


async def remove_environment(context: ServiceContext, caller: Caller, reference: str) -> None:
    """Remove an environment with all its parts.

    Raises:
        ApiError: NOT_FOUND; CONFLICT for the global one, for one with replicas, and for the source
            of others.
    """

    def run(connection: Connection) -> None:
        own = reach_layers_to_change(connection, caller, reference)[-1]
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
            "Replicas use this environment. Delete them first.",
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
