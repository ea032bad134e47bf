"""`qd replica canvas get`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json
from quarterdeck.cli.replica.contents import hand_out
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.canvas import CanvasFile

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="get")
@replica_argument
@click.argument("filename", metavar="NAME")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file."
)
@common_options
def command(common: Common, replica: str, filename: str, output: Path | None) -> None:
    """Print a text of the canvas, or write any of its files to disk."""

    async def read(client: "Client") -> CanvasFile:
        return await client.canvas.get(await find_replica(client, replica), filename)

    found = with_client(common, read)
    if common.json:
        put_json(found)
        return
    if found.too_large:
        raise NotDone(f"{filename} has {found.size_bytes} bytes, which is too large to be sent.")
    hand_out(found.content, found.base64, output)
