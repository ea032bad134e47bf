"""The skills that are enabled on an environment."""

from uuid import uuid4

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.sandboxes.port import NotARepositoryError
from quarterdeck.service.auth import Caller
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environment_skills as table
from quarterdeck.service.environments.access import no_part, reach
from quarterdeck.service.errors import ApiError
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.environment_parts import add_part, list_parts, remove_part
from quarterdeck.wire.environment_skills import CreateSkill, EnvironmentSkill
from quarterdeck.wire.errors import ErrorCode


async def list_skills(
    context: ServiceContext, caller: Caller, environment: str
) -> list[EnvironmentSkill]:
    """The environment's own skills, by name.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> list[EnvironmentSkill]:
        rows = list_parts(connection, table, reach(connection, caller, environment))
        return [EnvironmentSkill.model_validate(dict(row)) for row in rows]

    return await context.database.read(run)


async def add_skill(
    context: ServiceContext, caller: Caller, environment: str, body: CreateSkill
) -> EnvironmentSkill:
    """Enables a skill. Its source is read when a workspace starts; now it only has to be there.

    Raises:
        ApiError: NOT_FOUND, CONFLICT for a slug or a source that is enabled already, INVALID_REQUEST
            for a source on this machine that is not there.
    """
    await _require_source(context, body.source)
    skill_id, now = str(uuid4()), moment_text(context.clock())
    values = {**body.model_dump(), "id": skill_id, "created_at": now, "updated_at": now}

    def run(connection: Connection) -> EnvironmentSkill:
        own = {
            "organization_id": caller.organization_id,
            "environment_id": reach(connection, caller, environment),
        }
        add_part(connection, table, **own, **values)
        return EnvironmentSkill.model_validate({**own, **values})

    try:
        return await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(
            ErrorCode.CONFLICT,
            "A skill with this slug or this source is enabled already.",
            f"slug: {body.slug}; source: {body.source}",
        ) from e


async def _require_source(context: ServiceContext, source: str) -> None:
    try:
        await context.sandboxes.require_source(source.partition("#")[0])
    except NotARepositoryError as e:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(e), "source") from e


async def remove_skill(context: ServiceContext, caller: Caller, environment: str, id: str) -> None:
    """Takes a skill away; running workspaces keep it until they start again.

    Raises:
        ApiError: NOT_FOUND.
    """

    def run(connection: Connection) -> None:
        if not remove_part(connection, table, reach(connection, caller, environment), id):
            raise no_part("skill")

    await context.database.write(run)
