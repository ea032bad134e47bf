"""`qd replica files search`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client
from quarterdeck.wire.files import DEFAULT_FILES, MOST_FILES, FileStatus, FoundFile, FoundFiles

if TYPE_CHECKING:
    from quarterdeck.client import Client

_MARKS = {FileStatus.CHANGED: "M", FileStatus.UNTRACKED: "?"}


@click.command(name="search")
@replica_argument
@click.argument("query", default="")
@click.option("--prefix", default="", metavar="PATH", help="Only below this path.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_FILES),
    default=DEFAULT_FILES,
    show_default=True,
    help="At most so many.",
)
@click.option("--refresh", is_flag=True, help="Wait until an active replica has looked again.")
@common_options
def command(
    common: Common, replica: str, query: str, prefix: str, limit: int, refresh: bool
) -> None:
    """Find files by name or path, best match first; without a query, list them.

    Works in every state and wakes nobody. M marks a changed file, ? an untracked one.
    """

    async def find(client: "Client") -> FoundFiles:
        replica_id = await find_replica(client, replica)
        return await client.files.search(
            replica_id, query, prefix=prefix, limit=limit, refresh=refresh
        )

    found = with_client(common, find)
    if common.json:
        put_json(found)
        return
    for file in found.files:
        put(_line(file))
    if found.truncated:
        say("The index is not complete.")
    if found.next_cursor is not None:
        say("There are more; raise --limit to see them.")


def _line(file: FoundFile) -> str:
    mark = _MARKS.get(FileStatus(file.status)) if file.status in list(FileStatus) else None
    return f"{mark or ' '} {' '.join(file.display_path.splitlines())}"
