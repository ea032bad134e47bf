"""`qd replica canvas put`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.canvas import CANVAS_LIMIT, CanvasUpload

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="put")
@replica_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--name", metavar="NAME", help="Its name in the canvas; by default the file's own.")
@common_options
def command(common: Common, replica: str, file: Path, name: str | None) -> None:
    """Put a file into the canvas; a replica that is not active gets it when it starts."""
    try:
        with file.open("rb") as opened:
            content = opened.read(CANVAS_LIMIT + 1)
    except OSError as e:
        raise NotDone(f"{file} cannot be read: {e.strerror or e}.") from e

    async def send(client: "Client") -> CanvasUpload:
        replica_id = await find_replica(client, replica)
        return await client.canvas.upload(replica_id, name or file.name, content)

    done = with_client(common, send)
    if common.json:
        put_json(done)
        return
    put(done.file_path)
    if done.upload_id is not None:
        say(f"It is written when the replica starts (upload {done.upload_id}).")
