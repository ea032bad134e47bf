"""`qd replica files cat`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.replica.contents import hand_out
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.files import CONTENT_LIMIT, FileContent

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="cat")
@replica_argument
@click.argument("path", metavar="REPOSITORY/PATH")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file."
)
@common_options
def command(common: Common, replica: str, path: str, output: Path | None) -> None:
    """Print a file of a repository, or write it to disk; the replica must be active.

    REPOSITORY/PATH is what `search` prints.
    """
    repository, slash, inner = path.partition("/")
    if not slash or not inner:
        raise UsageFault(f"{path!r} names no file.", "Give it as: REPOSITORY/PATH.")

    async def read(client: "Client") -> FileContent:
        replica_id = await find_replica(client, replica)
        return await client.files.content(replica_id, repository, inner)

    found = with_client(common, read)
    if common.json:
        put_json(found)
        return
    hand_out(found.content, found.base64, output)
    if found.truncated:
        say(f"These are the first {CONTENT_LIMIT} of {found.size_bytes} bytes.")
