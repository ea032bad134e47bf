"""`qd repo`: connected repositories, and sets of them."""

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.clients import run_with, with_client
from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.lookup import find_repository, find_repository_set
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_success, print_table, print_text
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.cli.target import Target, find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.repositories import RepositorySet


VERBS = {
    "ls": Verb(__name__, "List repositories.", "ls"),
    "add": Verb(__name__, "Connect a git URL or a local path.", "add"),
    "rm": Verb(__name__, "Disconnect repositories.", "rm"),
    "sets": Verb(__name__, "Sets of repositories: list, create, remove.", "sets"),
}


@click.group(name="repo", cls=LazyGroup, verbs=VERBS)
def repo() -> None:
    """Manage repositories. REPOSITORY is a name or an id."""


def find_repository_url(wanted: str | None, target: Target) -> str | None:
    """Return the URL of a repository, by default of the one that the current directory is in.

    A local path becomes absolute. For a remote service it becomes the URL of its origin, which is
    all that such a service can reach.

    Raises:
        UsageError: a remote service cannot reach the path.
    """
    if wanted is not None and not Path(wanted).exists():
        return wanted
    top = _git(wanted or ".", "rev-parse", "--show-toplevel")
    if top is None and wanted is None:
        return None
    path = top or str(Path(wanted or ".").resolve())
    if target.embedded:
        return path
    origin = _git(path, "remote", "get-url", "origin")
    if origin is None and wanted is not None:
        raise UsageError(
            f"{path} has no remote named origin, and {target.endpoint} cannot read it from here.",
            "Give a git URL that the service can reach.",
        )
    return origin


def _git(directory: str, *arguments: str) -> str | None:
    try:
        process = subprocess.run(
            ["git", "-C", directory, *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return process.stdout.strip() or None if process.returncode == 0 else None


@click.command(name="ls")
@common_options
def ls(common: Common) -> None:
    """List repositories by name."""
    repositories = with_client(common, lambda client: client.repositories.list())
    if common.json:
        print_json(
            {"repositories": [repository.model_dump(mode="json") for repository in repositories]}
        )
        return
    if not repositories:
        print_message("No repositories. Connect one with: qd repo add URL.")
        return
    rows = (
        [repository.name, repository.default_branch, repository.url, str(repository.id)]
        for repository in repositories
    )
    print_table(["NAME", "BRANCH", "URL", "ID"], rows)


@click.command(name="add")
@click.argument("url", metavar="URL")
@click.option("--name", metavar="NAME", help="Name; default: the end of its URL.")
@click.option(
    "--branch", metavar="BRANCH", help="Branch to start from; default: the repository's default."
)
@common_options
def add(common: Common, url: str, name: str | None, branch: str | None) -> None:
    """Connect a git URL or a local path, and print its id."""
    from quarterdeck.wire.repositories import ConnectRepository

    target = find_target(common.profile)
    place = str(Path(url).resolve()) if target.embedded and Path(url).exists() else url
    body = ConnectRepository(url=place, name=name, default_branch=branch)
    repository = run_with(target, lambda client: client.repositories.connect(body))
    if common.json:
        print_json({"repository": repository.model_dump(mode="json")})
    else:
        print_text(str(repository.id))


@click.command(name="rm")
@click.argument("repositories", metavar="REPOSITORY...", nargs=-1, required=True)
@common_options
def rm(common: Common, repositories: tuple[str, ...]) -> None:
    """Disconnect repositories; replicas that have them keep them."""

    async def remove(client: "Client") -> list[UUID]:
        known = {await find_repository(client, wanted): wanted for wanted in repositories}
        for repository_id, wanted in known.items():
            await client.repositories.disconnect(repository_id)
            print_message(f"{wanted} is disconnected.")
        return list(known)

    removed = with_client(common, remove)
    if common.json:
        print_json({"success": True, "deleted": [str(removed_id) for removed_id in removed]})


@click.group(name="sets")
def sets() -> None:
    """Manage sets of repositories, which go into a replica together."""


@sets.command(name="ls")
@common_options
def list_sets(common: Common) -> None:
    """List sets by name."""

    async def read(client: "Client") -> "tuple[list[RepositorySet], dict[UUID, str]]":
        names = {repository.id: repository.name for repository in await client.repositories.list()}
        return await client.repository_sets.list(), names

    records, names = with_client(common, read)
    if common.json:
        print_json({"repository_sets": [record.model_dump(mode="json") for record in records]})
        return
    print_table(["NAME", "REPOSITORIES", "ID"], [_set_row(record, names) for record in records])


@sets.command(name="create")
@click.argument("name", metavar="NAME")
@click.argument("repositories", metavar="REPOSITORY...", nargs=-1, required=True)
@common_options
def create_set(common: Common, name: str, repositories: tuple[str, ...]) -> None:
    """Create a set of connected repositories and print its id."""
    from quarterdeck.wire.repositories import CreateRepositorySet

    async def make(client: "Client") -> "RepositorySet":
        ids = [await find_repository(client, wanted) for wanted in repositories]
        body = CreateRepositorySet(name=name, repositories=ids)
        return await client.repository_sets.create(body)

    repository_set = with_client(common, make)
    if common.json:
        print_json({"repository_set": repository_set.model_dump(mode="json")})
    else:
        print_text(str(repository_set.id))


@sets.command(name="rm")
@click.argument("name", metavar="SET")
@common_options
def remove_set(common: Common, name: str) -> None:
    """Remove a set; its repositories stay connected."""

    async def remove(client: "Client") -> None:
        await client.repository_sets.delete(await find_repository_set(client, name))

    with_client(common, remove)
    print_success(f"Removed {name}.", common.json)


def _set_row(repository_set: "RepositorySet", names: "dict[UUID, str]") -> list[str]:
    members = [names.get(id, str(id)) for id in repository_set.repositories]
    return [repository_set.name, ", ".join(members), str(repository_set.id)]
