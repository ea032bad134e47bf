"""Sets of connected repositories as rows."""

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, delete, insert, select

from quarterdeck.service.db.tables import repositories, repository_set_members, repository_sets
from quarterdeck.wire.repositories import Repository, RepositorySet

_members = (
    select(
        repositories.c.id,
        repositories.c.name,
        repositories.c.url,
        repositories.c.default_branch,
    )
    .select_from(
        repository_set_members.join(
            repositories, repositories.c.id == repository_set_members.c.repository_id
        )
    )
    .order_by(repository_set_members.c.position)
)


def add_repository_set(
    connection: Connection,
    set_id: str,
    organization_id: str,
    name: str,
    repository_ids: Sequence[str],
    now: str,
) -> None:
    """Stores a set; the order of its repositories is kept.

    Raises:
        IntegrityError: its name is taken, or a repository is not there.
    """
    connection.execute(
        insert(repository_sets).values(
            id=set_id, organization_id=organization_id, name=name, created_at=now
        )
    )
    connection.execute(
        insert(repository_set_members),
        [
            {"repository_set_id": set_id, "repository_id": repository_id, "position": position}
            for position, repository_id in enumerate(repository_ids)
        ],
    )


def find_repository_set(
    connection: Connection, organization_id: str, set_id: str
) -> RepositorySet | None:
    """The set of an id, in one organization."""
    statement = select(repository_sets).where(
        repository_sets.c.organization_id == organization_id, repository_sets.c.id == set_id
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _record(connection, row)


def list_repository_sets(connection: Connection, organization_id: str) -> list[RepositorySet]:
    """All sets of an organization, by name."""
    statement = (
        select(repository_sets)
        .where(repository_sets.c.organization_id == organization_id)
        .order_by(repository_sets.c.name)
    )
    rows = connection.execute(statement).mappings().all()
    return [_record(connection, row) for row in rows]


def remove_repository_set(connection: Connection, set_id: str) -> None:
    """Removes a set; its repositories stay connected."""
    connection.execute(delete(repository_sets).where(repository_sets.c.id == set_id))


def _record(connection: Connection, row: RowMapping) -> RepositorySet:
    found = connection.execute(
        _members.where(repository_set_members.c.repository_set_id == row["id"])
    ).mappings()
    return RepositorySet.model_validate(
        {
            "id": row["id"],
            "name": row["name"],
            "repositories": [Repository.model_validate(dict(one)) for one in found],
        }
    )
