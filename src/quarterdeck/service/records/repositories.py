"""Connected repositories as rows."""

import json

from sqlalchemy import Connection, delete, func, insert, select

from quarterdeck.service.db.tables import repositories, workspaces
from quarterdeck.wire.repositories import Repository

_columns = (
    repositories.c.id,
    repositories.c.name,
    repositories.c.url,
    repositories.c.default_branch,
)


def add_repository(
    connection: Connection, organization_id: str, repository: Repository, now: str
) -> None:
    """Stores a repository.

    Raises:
        IntegrityError: its URL is connected already.
    """
    values = {
        "id": str(repository.id),
        "name": repository.name,
        "url": repository.url,
        "default_branch": repository.default_branch,
    }
    connection.execute(
        insert(repositories).values(organization_id=organization_id, created_at=now, **values)
    )


def find_repository(
    connection: Connection, organization_id: str, repository_id: str
) -> Repository | None:
    """The repository of an id, in one organization."""
    statement = select(*_columns).where(
        repositories.c.organization_id == organization_id, repositories.c.id == repository_id
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else Repository.model_validate(dict(row))


def find_by_url(connection: Connection, organization_id: str, url: str) -> Repository | None:
    """The repository connected under a URL, in one organization."""
    statement = select(*_columns).where(
        repositories.c.organization_id == organization_id, repositories.c.url == url
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else Repository.model_validate(dict(row))


def named_like(connection: Connection, part: str) -> list[tuple[str, Repository]]:
    """The repositories of all organizations whose URL holds a text, in whatever letters."""
    url = func.lower(repositories.c.url)
    statement = (
        select(repositories.c.organization_id, *_columns)
        .where(url.contains(part.lower(), autoescape=True))
        .order_by(repositories.c.organization_id, repositories.c.created_at)
    )
    rows = connection.execute(statement).mappings()
    return [(row["organization_id"], Repository.model_validate(dict(row))) for row in rows]


def list_repositories(connection: Connection, organization_id: str) -> list[Repository]:
    """All repositories of an organization, by name."""
    statement = (
        select(*_columns)
        .where(repositories.c.organization_id == organization_id)
        .order_by(repositories.c.name, repositories.c.created_at)
    )
    rows = connection.execute(statement).mappings()
    return [Repository.model_validate(dict(row)) for row in rows]


def needed_repositories(connection: Connection) -> set[str]:
    """The ids of all that are connected, and of all that a workspace was made with."""
    connected = connection.execute(select(repositories.c.id)).scalars()
    made = connection.execute(select(workspaces.c.repositories_json).distinct()).scalars()
    return {*connected, *(one["id"] for text in made for one in json.loads(text))}


def remove_repository(connection: Connection, repository_id: str) -> None:
    """Removes a repository, also from the sets that hold it.

    Raises:
        IntegrityError: an environment is bound to it.
    """
    connection.execute(delete(repositories).where(repositories.c.id == repository_id))
