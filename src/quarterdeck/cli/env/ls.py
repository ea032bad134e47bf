"""`qd env ls`."""

from typing import TYPE_CHECKING, Literal

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environments import Environment


@click.command(name="ls")
@click.option("--scope", type=click.Choice(["org", "user", "all"]), default="all")
@common_options
def command(common: Common, scope: Literal["org", "user", "all"]) -> None:
    """List environments: the shared ones, and those that are yours alone."""

    async def read(client: "Client") -> "list[Environment]":
        return await client.environments.list(scope=scope)

    found = with_client(common, read)
    if common.json:
        put_json({"environments": [one.model_dump(mode="json") for one in found]})
        return
    table(["NAME", "SCOPE", "VARIABLES", "FILES", "SKILLS", "MCP", "ID"], map(_row, found))


def _row(one: "Environment") -> list[str]:
    scope = "global" if one.is_global else "user" if one.user_id else "org"
    counts = (one.variable_count, one.file_count, one.skill_count, one.mcp_count)
    return [one.name, scope, *map(str, counts), str(one.id)]
