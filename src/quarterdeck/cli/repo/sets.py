"""`qd repo sets`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import find_repository, find_set
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.repositories import RepositorySet


@click.group(name="sets")
def command() -> None:
    """Sets of repositories, which go into a replica together."""


@command.command(name="ls")
@common_options
def ls(common: Common) -> None:
    """List sets by name."""

    async def read(client: "Client") -> "list[RepositorySet]":
        return await client.repository_sets.list()

    found = with_client(common, read)
    if common.json:
        put_json({"repository_sets": [one.model_dump(mode="json") for one in found]})
        return
    table(["NAME", "REPOSITORIES", "ID"], map(_row, found))


@command.command(name="create")
@click.argument("name", metavar="NAME")
@click.argument("repositories", metavar="REPOSITORY...", nargs=-1, required=True)
@common_options
def create(common: Common, name: str, repositories: tuple[str, ...]) -> None:
    """Make a set of connected repositories, and print its id."""
    from quarterdeck.wire.repositories import CreateRepositorySet

    async def make(client: "Client") -> "RepositorySet":
        ids = [await find_repository(client, wanted) for wanted in repositories]
        body = CreateRepositorySet(name=name, repository_ids=ids)
        return await client.repository_sets.create(body)

    made = with_client(common, make)
    if common.json:
        put_json({"repository_set": made.model_dump(mode="json")})
    else:
        put(str(made.id))


@command.command(name="rm")
@click.argument("name", metavar="SET")
@common_options
def rm(common: Common, name: str) -> None:
    """Remove a set; its repositories stay connected."""

    async def remove(client: "Client") -> None:
        await client.repository_sets.delete(await find_set(client, name))

    with_client(common, remove)
    say(f"{name} is gone.")
    if common.json:
        put_json({"success": True})


def _row(one: "RepositorySet") -> list[str]:
    return [one.name, ", ".join(member.name for member in one.repositories), str(one.id)]
