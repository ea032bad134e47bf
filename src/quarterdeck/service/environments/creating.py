"""Making environments."""

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.bindings import check_binding, check_source
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environments import add_environment, find_environment
from quarterdeck.wire.environments import CreateEnvironment, Environment
from quarterdeck.wire.errors import ErrorCode


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
        organization = caller.organization_id
        check_binding(connection, organization, body.repository_id, body.repository_set_id)
        check_source(connection, caller, body)
        user_id = caller.user_id if body.scope == "user" else None
        columns = body.model_dump(mode="json", exclude={"scope"})
        made = add_environment(connection, organization, now, user_id=user_id, **columns)
        return find_environment(connection, organization, caller.user_id, made)

    try:
        environment = await context.database.write(run)
    except IntegrityError as e:
        raise name_taken(body.name) from e
    assert environment is not None  # it was stored in the same transaction
    return environment


def name_taken(name: str) -> ApiError:
    """The refusal of a name that another environment of the scope has."""
    return ApiError(ErrorCode.CONFLICT, "An environment has this name already.", f"name: {name}")
