"""Repositories that environments can put into a workspace (docs/interface.md 7)."""

from typing import Annotated

from pydantic import AliasChoices, Field

from quarterdeck.wire.base import ONE_LINE, Body, GivenId, Id, Patch, Record, Timestamp

MOST_IN_SET = 100

REPOSITORY_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""A repository's name is a directory of each workspace and a part of addresses, the same everywhere."""


class Repository(Record):
    """A connected repository. `url` is a git URL or, on the embedded service, a local path."""

    id: Id
    """Unique id."""
    name: str
    """Name, and directory in workspaces."""
    url: str
    """Where it is cloned from."""
    default_branch: str
    """Branch that new branches start from."""


class RepositoryList(Record):
    """Answer of `GET /v1/replica/repositories`."""

    repositories: list[Repository]
    """Repositories, by name."""


class BranchList(Record):
    """Answer of `GET /v1/replica/repositories/{id}/branches`."""

    branches: list[str]
    """Branches of the source, the one with the newest commit first."""
    default_branch: str
    """Branch that replicas start from by default."""


class RepositoryAnswer(Record):
    """Answer of connecting a repository."""

    repository: Repository
    """The repository."""


class ConnectRepository(Body):
    """Body of `POST /v1/replica/repositories`; 400 when `url` names no repository."""

    url: Annotated[str, Field(min_length=1, max_length=4096)]
    """Git URL or, on the embedded service, a local path."""
    name: Annotated[str, Field(pattern=REPOSITORY_NAME)] | None = None
    """Name, and directory in workspaces; the last part of the URL when it is left out."""
    default_branch: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """Branch that new branches start from; it must exist."""


class RepositorySet(Record):
    """Repositories that go into a workspace together: their ids, in this order."""

    id: Id
    """Unique id."""
    name: str
    """Name, unique in the organization."""
    repositories: list[Id]
    """Ids of its repositories, in order."""
    created_at: Timestamp
    """When it was created."""


class RepositorySetList(Record):
    """Answer of `GET /v1/replica/repository-sets`, by name."""

    repository_sets: list[RepositorySet]
    """Sets."""


class RepositorySetAnswer(Record):
    """Answer of creating, reading or changing a set."""

    repository_set: RepositorySet
    """The set."""


SetName = Annotated[str, Field(min_length=1, max_length=100), ONE_LINE]
Members = Annotated[
    list[GivenId],
    Field(
        min_length=1,
        max_length=MOST_IN_SET,
        # Earlier clients send the second name.
        validation_alias=AliasChoices("repositories", "repository_ids"),
    ),
]


class CreateRepositorySet(Body):
    """Body of `POST /v1/replica/repository-sets`; the name is unique (409)."""

    name: SetName
    """Name, unique in the organization."""
    repositories: Members
    """Ids of its repositories, in order."""


class ChangeRepositorySet(Patch):
    """Body of `PATCH /v1/replica/repository-sets/{id}`: what is not given stays."""

    name: SetName | None = None
    """Name, unique in the organization."""
    repositories: Annotated[list[GivenId] | None, Field(min_length=1, max_length=MOST_IN_SET)] = (
        None
    )
    """Ids of its repositories, in order; replaces the list."""
