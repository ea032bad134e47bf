"""What an environment may refer to: its repository or set of them, and its source."""

from sqlalchemy import Connection

from quarterdeck.service.auth import Caller
from quarterdeck.service.errors import ApiError
from quarterdeck.service.records.environments import find_environment
from quarterdeck.service.records.repositories import find_repository
from quarterdeck.service.records.repository_sets import find_repository_set
from quarterdeck.wire.base import Id
from quarterdeck.wire.environments import CreateEnvironment
from quarterdeck.wire.errors import ErrorCode

SOURCE = "source_environment_id"
LOCKED_BY_SOURCE = ("repository_id", "repository_set_id", "system_prompt")


def refused(field: str, message: str) -> ApiError:
    """The refusal of a field's value."""
    return ApiError(ErrorCode.INVALID_REQUEST, message, field)


def locked(field: str) -> ApiError:
    """The refusal of a field that an environment takes from its source."""
    return refused(field, "It is taken from the source and cannot be set here.")


def check_binding(
    connection: Connection,
    organization_id: str,
    repository_id: Id | None,
    repository_set_id: Id | None,
) -> None:
    """Refuses what is not there, and both at once.

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
    """Refuses a source that cannot be one, and fields that would be taken from it.

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
