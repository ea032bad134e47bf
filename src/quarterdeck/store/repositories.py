"""Repositories of a wish: connected, and bound to an environment as one or as a set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.client.errors import InvalidRequest
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.repositories import ConnectRepository, CreateRepositorySet, Repository

if TYPE_CHECKING:
    from quarterdeck.client.client import Client


@dataclass(frozen=True)
class RepositoryWish:
    """A path or URL, and the branch that work begins from; None for the repository's own."""

    url: str
    branch: str | None = None


@dataclass(frozen=True)
class Binding:
    """What an environment is bound to: one repository, or a set."""

    repository_id: UUID | None = None
    repository_set_id: UUID | None = None

    def fits(self, environment: Environment) -> bool:
        """Whether an environment has this binding."""
        return (environment.repository_id, environment.repository_set_id) == (
            self.repository_id,
            self.repository_set_id,
        )


async def connected(
    client: "Client", first: RepositoryWish, others: Sequence[RepositoryWish]
) -> list[Repository]:
    """Connects all of them.

    Raises:
        InvalidRequest: one is no repository, or is connected with another branch; `details` begins
            with `url` or `branch` for the first, with `others` for the rest.
        ClientError: refused or unreachable.
    """
    found = [await _connected(client, first)]
    for wish in others:
        try:
            found.append(await _connected(client, wish))
        except InvalidRequest as error:
            error.details = f"others: {wish.url}"
            raise
    return list({one.id: one for one in found}.values())


async def _connected(client: "Client", wish: RepositoryWish) -> Repository:
    body = ConnectRepository(url=wish.url, default_branch=wish.branch)
    made = await client.repositories.connect(body)
    if wish.branch is not None and made.default_branch != wish.branch:
        raise InvalidRequest(
            f"{made.name} is connected with the branch {made.default_branch} already.",
            status=400,
            details="branch",
            next_step="Leave the branch out, or disconnect the repository first.",
        )
    return made


async def binding(client: "Client", repositories: Sequence[Repository]) -> Binding:
    """One repository, or the set of exactly these; the set is made when there is none.

    Raises:
        ClientError: refused or unreachable.
    """
    if len(repositories) == 1:
        return Binding(repository_id=repositories[0].id)
    wanted = [one.id for one in repositories]
    sets = await client.repository_sets.list()
    for one in sets:
        if [each.id for each in one.repositories] == wanted:
            return Binding(repository_set_id=one.id)
    name = _free("-".join(one.name for one in repositories)[:180], {one.name for one in sets})
    made = await client.repository_sets.create(
        CreateRepositorySet(name=name, repository_ids=wanted)
    )
    return Binding(repository_set_id=made.id)


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
