"""From what a person typed to the environment, repository or set that is meant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.errors import AmbiguousName, NotDone

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environments import Environment

environment_argument = click.argument("environment", metavar="ENVIRONMENT")


class Named(Protocol):
    """What is known by a name and an id."""

    @property
    def id(self) -> UUID: ...
    @property
    def name(self) -> str: ...


Thing = TypeVar("Thing", bound=Named)


async def find_environment(client: "Client", wanted: str) -> "Environment":
    """The environment of a name or id, or the global one.

    Raises:
        NotDone: there is none.
        AmbiguousName: a shared and a personal one have the name.
    """
    from quarterdeck.wire.environments import GLOBAL

    if wanted == GLOBAL:
        return await client.environments.get(GLOBAL)
    found = await client.environments.list(scope="all")
    return only(wanted, found, "environment", "qd env ls")


def only(wanted: str, known: Sequence[Thing], what: str, see: str) -> Thing:
    """The only one that is called so.

    Raises:
        NotDone: there is none.
        AmbiguousName: there are several.
    """
    by_id = [one for one in known if str(one.id) == wanted.lower()]
    found = by_id or [one for one in known if one.name == wanted]
    if not found:
        raise NotDone(f"There is no {what} {wanted!r}.", f"See them with: {see}.")
    if len(found) > 1:
        ids = ", ".join(str(one.id) for one in found)
        raise AmbiguousName(f"{wanted!r} names several: {ids}.", "Give the id.")
    return found[0]


async def find_repository(client: "Client", wanted: str) -> UUID:
    """The id of a connected repository, by its name or id."""
    return only(wanted, await client.repositories.list(), "repository", "qd repo ls").id


async def find_set(client: "Client", wanted: str) -> UUID:
    """The id of a set of repositories, by its name or id."""
    known = await client.repository_sets.list()
    return only(wanted, known, "repository set", "qd repo sets ls").id
