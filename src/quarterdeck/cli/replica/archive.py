"""`qd replica archive`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="archive")
@replica_argument
@common_options
def command(common: Common, replica: str) -> None:
    """Stop the engine and pack the files away; the history stays. A message restores everything."""

    async def work(client: "Client") -> None:
        await client.replicas.archive(await find_replica(client, replica))

    with_client(common, work)
    if common.json:
        put_json({"success": True})
    say(f"{replica} is archived.")
