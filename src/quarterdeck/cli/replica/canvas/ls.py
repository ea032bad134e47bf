"""`qd replica canvas ls`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, table
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.canvas import CanvasItem, CanvasList

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="ls")
@replica_argument
@common_options
def command(common: Common, replica: str) -> None:
    """List the files of a replica's canvas; it must be active."""

    async def read(client: "Client") -> list[CanvasItem]:
        return await client.canvas.list(await find_replica(client, replica))

    items = with_client(common, read)
    if common.json:
        put_json(CanvasList(items=items))
        return
    table(
        ("NAME", "KIND", "BYTES"), [(one.filename, one.kind, str(one.size_bytes)) for one in items]
    )
