"""The repositories that an environment puts into its workspaces."""

from sqlalchemy import Connection

from quarterdeck.service.records.environments import find_environment
from quarterdeck.service.records.repositories import find_repository
from quarterdeck.service.records.repository_sets import find_repository_set
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.repositories import Repository


def repositories_for(
    connection: Connection, organization_id: str, user_id: str | None, environment_id: str
) -> list[dict[str, str]] | None:
    """What a workspace's row keeps of the repositories that it is to have.

    The environment's own, or its source's: one, a set in its order, or none. None for an
    environment that is not there, or is another user's.
    """
    environment = find_environment(connection, organization_id, user_id, environment_id)
    if environment is None:
        return None
    return [one.model_dump(mode="json") for one in _bound(connection, environment)]


def _bound(connection: Connection, environment: Environment) -> list[Repository]:
    organization = str(environment.organization_id)
    if environment.repository_id is not None:
        found = find_repository(connection, organization, str(environment.repository_id))
        return [] if found is None else [found]
    if environment.repository_set_id is not None:
        bound = find_repository_set(connection, organization, str(environment.repository_set_id))
        return [] if bound is None else bound.repositories
    return []
