"""Making environments: what a new one may refer to."""

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environments import add_environment, find_environment
from quarterdeck.service.records.repositories import find_repository
from quarterdeck.wire.environments import CreateEnvironment, Environment
from quarterdeck.wire.errors import ErrorCode

LOCKED_BY_SOURCE = ("repository_id", "repository_set_id", "system_prompt")


async def create_environment(
    context: ServiceContext, caller: Caller, body: CreateEnvironment
) -> Environment:
    """Stores an environment.

    Raises:
        ApiError: CONFLICT for a name that its scope has, INVALID_REQUEST for a reference to
            nothing, USER_REQUIRED for a personal one without a user.
    """
    if body.scope == "user" and caller.user_id is None:
        raise ApiError(
            ErrorCode.USER_REQUIRED, "A personal environment needs a user; this key has none."
        )
    now = moment_text(context.clock())

    def run(connection: Connection) -> Environment | None:
        _check(connection, caller, body)
        user_id = caller.user_id if body.scope == "user" else None
        columns = body.model_dump(mode="json", exclude={"scope"})
        made = add_environment(connection, caller.organization_id, now, user_id=user_id, **columns)
        return find_environment(connection, caller.organization_id, caller.user_id, made)

    try:
        environment = await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT, "An environment has this name already.", f"name: {body.name}"
        ) from e
    assert environment is not None  # it was stored in the same transaction
    return environment


def _check(connection: Connection, caller: Caller, body: CreateEnvironment) -> None:
    organization = caller.organization_id
    if body.repository_id is not None and not find_repository(
        connection, organization, str(body.repository_id)
    ):
        raise _unknown("repository_id", "No repository has this id.")
    if body.repository_set_id is not None:
        raise _unknown("repository_set_id", "No repository set has this id.")
    if body.source_environment_id is not None:
        _check_source(connection, caller, body)


def _check_source(connection: Connection, caller: Caller, body: CreateEnvironment) -> None:
    if body.scope != "user":
        raise _unknown("source_environment_id", "Only a personal environment has a source.")
    source = str(body.source_environment_id)
    if not find_environment(connection, caller.organization_id, caller.user_id, source):
        raise _unknown("source_environment_id", "No environment has this id.")
    for field in LOCKED_BY_SOURCE:
        if getattr(body, field) is not None:
            raise _unknown(field, "It is taken from the source and cannot be set here.")


def _unknown(field: str, message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message, field)
