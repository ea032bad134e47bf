"""`qd env variables`."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from quarterdeck.cli.env.dotenv import read_dotenv
from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.env.inputs import read_secret, read_text
from quarterdeck.cli.env.masking import reveal_option, shown
from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_variables import EnvironmentVariable


@click.group(name="variables")
def command() -> None:
    """Variables of an environment. Values come from stdin or a file, never from arguments."""


@command.command(name="ls")
@environment_argument
@reveal_option
@common_options
def ls(common: Common, environment: str, reveal: bool) -> None:
    """List variables by key; values are masked unless --reveal is given."""

    async def read(client: "Client") -> "list[EnvironmentVariable]":
        return await client.variables.list((await find_environment(client, environment)).id)

    found = with_client(common, read)
    if common.json:
        put_json({"environment_variables": [_plain(one, reveal) for one in found]})
        return
    table(
        ["KEY", "VALUE", "OVERRIDE"],
        ([one.key, shown(one.value, reveal), _override(one)] for one in found),
    )


@command.command(name="set")
@environment_argument
@click.argument("key", metavar="KEY")
@click.option("--from", "source", metavar="FILE", help="Read the value from here, not from stdin.")
@click.option(
    "--override/--no-override",
    default=None,
    help="Whether personal environments may set their own value.",
)
@common_options
def set_(
    common: Common, environment: str, key: str, source: str | None, override: bool | None
) -> None:
    """Set one variable; a terminal is asked for the value without showing it."""
    value = read_text(source) if source else read_secret(f"Value of {key}")

    async def write(client: "Client") -> "EnvironmentVariable":
        of = (await find_environment(client, environment)).id
        known = {one.key: one.id for one in await client.variables.list(of)}
        return await _put(client, of, known, key, value, override)

    one = with_client(common, write)
    if common.json:
        put_json({"environment_variable": _plain(one, False)})
    else:
        say(f"{key} is set.")


@command.command(name="import")
@environment_argument
@click.argument("source", metavar="[FILE]", required=False)
@common_options
def import_(common: Common, environment: str, source: str | None) -> None:
    """Set every variable of a .env file, or of stdin. Others stay as they are."""
    wanted = read_dotenv(read_text(source))

    async def write(client: "Client") -> list[str]:
        of = (await find_environment(client, environment)).id
        known = {one.key: one.id for one in await client.variables.list(of)}
        for key, value in wanted.items():
            await _put(client, of, known, key, value, None)
        return list(wanted)

    keys = with_client(common, write)
    if common.json:
        put_json({"success": True, "set": keys})
    else:
        say(f"{len(keys)} variables are set.")


@command.command(name="rm")
@environment_argument
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@common_options
def rm(common: Common, environment: str, keys: tuple[str, ...]) -> None:
    """Remove variables."""

    async def remove(client: "Client") -> None:
        of = (await find_environment(client, environment)).id
        known = {one.key: one.id for one in await client.variables.list(of)}
        missing = [key for key in keys if key not in known]
        if missing:
            raise NotDone(f"There is no variable {missing[0]!r}; nothing was removed.")
        for key in dict.fromkeys(keys):
            await client.variables.delete(of, known[key])
            say(f"{key} is gone.")

    with_client(common, remove)
    if common.json:
        put_json({"success": True, "deleted": list(keys)})


async def _put(
    client: "Client",
    environment: UUID,
    known: dict[str, UUID],
    key: str,
    value: str,
    override: bool | None,
) -> "EnvironmentVariable":
    from quarterdeck.wire.environment_variables import ChangeVariable, CreateVariable

    switch: dict[str, Any] = {} if override is None else {"personal_override_allowed": override}
    if key in known:
        change = ChangeVariable(value=value, **switch)
        return await client.variables.change(environment, known[key], change)
    return await client.variables.add(environment, CreateVariable(key=key, value=value, **switch))


def _plain(one: "EnvironmentVariable", reveal: bool) -> dict[str, object]:
    return {**one.model_dump(mode="json"), "value": shown(one.value, reveal)}


def _override(one: "EnvironmentVariable") -> str:
    return "allowed" if one.personal_override_allowed else "-"
