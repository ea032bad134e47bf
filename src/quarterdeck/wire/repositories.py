"""Repositories that environments can put into a workspace (INTERFACE 7)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, GivenId, Id, Record
from quarterdeck.wire.stored_text import ONE_LINE

MOST_IN_SET = 100


class Repository(Record):
    """A connected repository. `url` is a git URL or, on the embedded service, a local path."""

    id: Id
    name: str
    url: str
    default_branch: str


class RepositoryList(Record):
    """Answer of `GET /v1/replica/repositories`."""

    repositories: list[Repository]


class RepositoryAnswer(Record):
    """Answer of connecting a repository."""

    repository: Repository


class ConnectRepository(Body):
    """Body of `POST /v1/replica/repositories`; 400 when `url` names no repository."""

    url: Annotated[str, Field(min_length=1, max_length=4096)]
    name: Annotated[str, Field(pattern=r"^\S+$", max_length=200)] | None = None
    default_branch: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class RepositorySet(Record):
    """Repositories that go into a workspace together, in this order."""

    id: Id
    name: str
    repositories: list[Repository]


class RepositorySetList(Record):
    """Answer of `GET /v1/replica/repository-sets`, by name."""

    repository_sets: list[RepositorySet]


class RepositorySetAnswer(Record):
    """Answer of making a set."""

    repository_set: RepositorySet


class CreateRepositorySet(Body):
    """Body of `POST /v1/replica/repository-sets`; the name is unique (409)."""

    name: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
    repository_ids: Annotated[list[GivenId], Field(min_length=1, max_length=MOST_IN_SET)]
