"""`qd env files`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from uuid import UUID

    from quarterdeck.client import Client
    from quarterdeck.wire.environment_files import EnvironmentFile

path_argument = click.argument("path", metavar="PATH")


@click.group(name="files")
def command() -> None:
    """Files that an environment writes into its replicas. PATH begins with ~/ (quote it)."""


@command.command(name="ls")
@environment_argument
@common_options
def ls(common: Common, environment: str) -> None:
    """List files by path."""

    async def read(client: "Client") -> "list[EnvironmentFile]":
        return await client.environment_files.list((await find_environment(client, environment)).id)

    found = with_client(common, read)
    if common.json:
        put_json({"environment_files": [one.model_dump(mode="json") for one in found]})
        return
    table(
        ["PATH", "BYTES", "NAME"],
        ([one.path, str(len(one.content.encode())), one.name] for one in found),
    )


@command.command(name="cat")
@environment_argument
@path_argument
@common_options
def cat(common: Common, environment: str, path: str) -> None:
    """Print a file's content."""

    async def read(client: "Client") -> "EnvironmentFile":
        return (await _find(client, environment, path))[1]

    one = with_client(common, read)
    if common.json:
        put_json({"environment_file": one.model_dump(mode="json")})
    else:
        put(one.content, end="")


@command.command(name="put")
@environment_argument
@path_argument
@click.option("--from", "source", metavar="FILE", help="Read it from here, not from stdin.")
@click.option("--name", metavar="NAME", help="What to call it; by default the end of its path.")
@common_options
def put_(common: Common, environment: str, path: str, source: str | None, name: str | None) -> None:
    """Write a file, or write it anew."""
    from quarterdeck.wire.environment_files import ChangeFile, CreateFile

    made = CreateFile(path=path, content=read_text(source), name=name)

    async def write(client: "Client") -> "EnvironmentFile":
        of = (await find_environment(client, environment)).id
        for known in await client.environment_files.list(of):
            if known.path == path:
                named = {} if name is None else {"name": name}
                change = ChangeFile(content=made.content, **named)
                return await client.environment_files.change(of, known.id, change)
        return await client.environment_files.add(of, made)

    one = with_client(common, write)
    if common.json:
        put_json({"environment_file": one.model_dump(mode="json")})
    else:
        say(f"{path} is written.")


@command.command(name="rm")
@environment_argument
@path_argument
@common_options
def rm(common: Common, environment: str, path: str) -> None:
    """Remove a file from the environment; replicas keep theirs until they start again."""

    async def remove(client: "Client") -> None:
        of, one = await _find(client, environment, path)
        await client.environment_files.delete(of, one.id)

    with_client(common, remove)
    say(f"{path} is gone.")
    if common.json:
        put_json({"success": True})


async def _find(client: "Client", environment: str, path: str) -> "tuple[UUID, EnvironmentFile]":
    of = (await find_environment(client, environment)).id
    for known in await client.environment_files.list(of):
        if known.path == path:
            return of, known
    raise NotDone(f"There is no file {path!r}.", f"See them with: qd env files ls {environment}.")
