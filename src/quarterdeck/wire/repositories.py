"""Repositories that environments can put into a workspace (INTERFACE 7)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Id, Record


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
