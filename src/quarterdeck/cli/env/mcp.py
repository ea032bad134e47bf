"""`qd env mcp`."""

import json
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.env.masking import reveal_option, shown_config
from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import json_text, put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_mcps import EnvironmentMcp


@click.group(name="mcp")
def command() -> None:
    """MCP servers that an environment hands to its agents."""


@command.command(name="ls")
@environment_argument
@reveal_option
@common_options
def ls(common: Common, environment: str, reveal: bool) -> None:
    """List servers; what variables and headers hold is masked unless --reveal is given."""

    async def read(client: "Client") -> "list[EnvironmentMcp]":
        return await client.mcps.list((await find_environment(client, environment)).id)

    found = with_client(common, read)
    if common.json:
        put_json({"environment_mcps": [_plain(one, reveal) for one in found]})
        return
    rows = ([one.name, one.transport, json_text(shown_config(one.config, reveal))] for one in found)
    table(["NAME", "TRANSPORT", "CONFIG"], rows)


@command.command(name="set")
@environment_argument
@click.argument("name", metavar="NAME")
@click.argument("transport", type=click.Choice(["stdio", "http", "sse"]))
@click.option("--from", "source", metavar="FILE", help="Read it from here, not from stdin.")
@common_options
def set_(common: Common, environment: str, name: str, transport: str, source: str | None) -> None:
    """Set a server; its configuration is read as JSON.

    stdio: {"command": ..., "args": [...], "env": {...}}; http and sse: {"url": ..., "headers":
    {...}}.
    """
    from quarterdeck.wire.environment_mcps import ChangeMcp, CreateMcp, McpTransport

    made = CreateMcp(name=name, transport=McpTransport(transport), config=_config(source))

    async def write(client: "Client") -> "EnvironmentMcp":
        of = (await find_environment(client, environment)).id
        for known in await client.mcps.list(of):
            if known.name == name:
                change = ChangeMcp(transport=made.transport, config=made.config)
                return await client.mcps.change(of, known.id, change)
        return await client.mcps.add(of, made)

    one = with_client(common, write)
    if common.json:
        put_json({"environment_mcp": _plain(one, False)})
    else:
        say(f"{name} is set.")


@command.command(name="rm")
@environment_argument
@click.argument("name", metavar="NAME")
@common_options
def rm(common: Common, environment: str, name: str) -> None:
    """Remove a server."""

    async def remove(client: "Client") -> None:
        of = (await find_environment(client, environment)).id
        for one in await client.mcps.list(of):
            if name in (one.name, str(one.id)):
                await client.mcps.delete(of, one.id)
                return
        raise NotDone(f"There is no server {name!r}.", f"See: qd env mcp ls {environment}.")

    with_client(common, remove)
    say(f"{name} is gone.")
    if common.json:
        put_json({"success": True})


def _config(source: str | None) -> dict[str, Any]:
    try:
        config = json.loads(read_text(source))
    except ValueError as e:
        raise UsageFault("The configuration is no JSON.") from e
    if not isinstance(config, dict):
        raise UsageFault("The configuration is no JSON object.")
    return {str(field): value for field, value in config.items()}  # pyright: ignore


def _plain(one: "EnvironmentMcp", reveal: bool) -> dict[str, object]:
    return {**one.model_dump(mode="json"), "config": shown_config(one.config, reveal)}
