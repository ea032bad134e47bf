"""`qd replica previews`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, table
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.events import Preview
from quarterdeck.wire.previews import PreviewList

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="previews")
@replica_argument
@common_options
def command(common: Common, replica: str) -> None:
    """List the ports of a replica that can be looked at, with their addresses."""

    async def read(client: "Client") -> list[Preview]:
        return await client.previews.list(await find_replica(client, replica))

    previews = with_client(common, read)
    if common.json:
        put_json(PreviewList(previews=previews))
        return
    table(("PORT", "ADDRESS"), [(str(one.port), one.public_url) for one in previews])
