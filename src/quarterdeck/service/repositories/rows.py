"""Rows of repositories and repository sets."""

import json
from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from quarterdeck.service.db.records import as_record, readable
from quarterdeck.service.db.tables import (
    repositories,
    repository_set_members,
    repository_sets,
    workspaces,
)
from quarterdeck.wire.repositories import Repository, RepositorySet

_columns = (
    repositories.c.id,
    repositories.c.name,
    repositories.c.url,
    repositories.c.default_branch,
)


def _repository(row: RowMapping) -> Repository:
    return as_record(Repository, row)


def add_repository(
    connection: Connection, organization_id: str, repository: Repository, now: str
) -> None:
    """Store a repository.

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
    """Return the repository of an id, in one organization."""
    statement = select(*_columns).where(
        repositories.c.organization_id == organization_id, repositories.c.id == repository_id
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _repository(row)


def has_repository(connection: Connection, organization_id: str, repository_id: str) -> bool:
    """Return whether an organization has a repository of this id, also a damaged one."""
    statement = select(repositories.c.id).where(
        repositories.c.organization_id == organization_id, repositories.c.id == repository_id
    )
    return connection.execute(statement).first() is not None


def find_by_url(connection: Connection, organization_id: str, url: str) -> Repository | None:
    """Return the repository connected under a URL, in one organization."""
    statement = select(*_columns).where(
        repositories.c.organization_id == organization_id, repositories.c.url == url
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _repository(row)


def named_like(connection: Connection, part: str) -> list[tuple[str, Repository]]:
    """Return the repositories of all organizations whose URL contains a text, in any case."""
    url = func.lower(repositories.c.url)
    statement = (
        select(repositories.c.organization_id, *_columns)
        .where(url.contains(part.lower(), autoescape=True))
        .order_by(repositories.c.organization_id, repositories.c.created_at)
    )
    rows = connection.execute(statement).mappings()
    return readable(rows, lambda row: (row["organization_id"], _repository(row)))


def list_repositories(connection: Connection, organization_id: str) -> list[Repository]:
    """Return all repositories of an organization, by name."""
    statement = (
        select(*_columns)
        .where(repositories.c.organization_id == organization_id)
        .order_by(repositories.c.name, repositories.c.created_at)
    )
    rows = connection.execute(statement).mappings()
    return readable(rows, _repository)


def needed_repositories(connection: Connection) -> set[str]:
    """Return the ids of all connected repositories, and of those of workspaces."""
    connected = connection.execute(select(repositories.c.id)).scalars()
    used = connection.execute(select(workspaces.c.repositories_json).distinct()).scalars()
    return {
        *connected,
        *(repository_id["id"] for text in used for repository_id in json.loads(text)),
    }


def remove_repository(connection: Connection, repository_id: str) -> None:
    """Remove a repository, also from its sets.

    Raises:
        IntegrityError: an environment is bound to it.
    """
    connection.execute(delete(repositories).where(repositories.c.id == repository_id))


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

_member_ids = (
    select(repository_set_members.c.repository_id)
    .where(repository_set_members.c.repository_set_id == bindparam("of"))
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
    """Store a set; the order of its repositories is kept.

    Raises:
        IntegrityError: its name is taken, or a repository does not exist.
    """
    connection.execute(
        insert(repository_sets).values(
            id=set_id, organization_id=organization_id, name=name, created_at=now
        )
    )
    _add_members(connection, set_id, repository_ids)


def change_repository_set(
    connection: Connection, set_id: str, name: str | None, repository_ids: Sequence[str] | None
) -> None:
    """Give a set another name or other repositories; what is None stays.

    Raises:
        IntegrityError: the name is taken, or a repository does not exist.
    """
    if name is not None:
        connection.execute(
            update(repository_sets).where(repository_sets.c.id == set_id).values(name=name)
        )
    if repository_ids is not None:
        members = repository_set_members.c.repository_set_id == set_id
        connection.execute(delete(repository_set_members).where(members))
        _add_members(connection, set_id, repository_ids)


def repositories_in_set(connection: Connection, set_id: str) -> list[Repository]:
    """Return the repositories of a set, in its order.

    Raises:
        DamagedRecordError: one of them is damaged. Without it a replica would lack its files.
    """
    rows = connection.execute(
        _members.where(repository_set_members.c.repository_set_id == set_id)
    ).mappings()
    return [_repository(row) for row in rows]


def sets_with(connection: Connection, repository_id: str) -> list[str]:
    """Return the names of the sets that a repository is in."""
    statement = (
        select(repository_sets.c.name)
        .join(
            repository_set_members,
            repository_set_members.c.repository_set_id == repository_sets.c.id,
        )
        .where(repository_set_members.c.repository_id == repository_id)
        .order_by(repository_sets.c.name)
    )
    return list(connection.execute(statement).scalars())


def find_repository_set(
    connection: Connection, organization_id: str, set_id: str
) -> RepositorySet | None:
    """Return the set of an id, in one organization."""
    statement = select(repository_sets).where(
        repository_sets.c.organization_id == organization_id, repository_sets.c.id == set_id
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _record(connection, row)


def list_repository_sets(connection: Connection, organization_id: str) -> list[RepositorySet]:
    """Return all sets of an organization, by name."""
    statement = (
        select(repository_sets)
        .where(repository_sets.c.organization_id == organization_id)
        .order_by(repository_sets.c.name)
    )
    rows = connection.execute(statement).mappings().all()
    return readable(rows, partial(_record, connection))


def remove_repository_set(connection: Connection, set_id: str) -> None:
    """Remove a set; its repositories stay connected."""
    connection.execute(delete(repository_sets).where(repository_sets.c.id == set_id))


def _record(connection: Connection, row: RowMapping) -> RepositorySet:
    members = connection.execute(_member_ids, {"of": row["id"]}).scalars().all()
    columns = {name: row[name] for name in ("id", "name", "created_at")}
    return as_record(RepositorySet, {**columns, "repositories": members})


def _add_members(connection: Connection, set_id: str, repository_ids: Sequence[str]) -> None:
    connection.execute(
        insert(repository_set_members),
        [
            {"repository_set_id": set_id, "repository_id": repository_id, "position": position}
            for position, repository_id in enumerate(repository_ids)
        ],
    )
