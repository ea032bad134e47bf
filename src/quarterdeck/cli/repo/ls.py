"""`qd repo ls`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.repositories import Repository


@click.command(name="ls")
@common_options
def command(common: Common) -> None:
    """List repositories by name."""

    async def read(client: "Client") -> "list[Repository]":
        return await client.repositories.list()

    found = with_client(common, read)
    if common.json:
        put_json({"repositories": [one.model_dump(mode="json") for one in found]})
        return
    if not found:
        say("No repositories. Connect one with: qd repo add URL.")
        return
    rows = ([one.name, one.default_branch, one.url, str(one.id)] for one in found)
    table(["NAME", "BRANCH", "URL", "ID"], rows)
