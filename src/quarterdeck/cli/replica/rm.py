"""`qd replica rm`."""

import sys
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, safe_line, say
from quarterdeck.cli.replica.find import find_replica
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("replicas", metavar="REPLICA...", nargs=-1, required=True)
@common_options
def command(common: Common, replicas: tuple[str, ...], yes: bool) -> None:
    """Stop everything in the replicas and remove their files. Work that was not pushed is lost."""

    async def find(client: "Client") -> dict[UUID, str]:
        return {await find_replica(client, wanted): wanted for wanted in replicas}

    found = with_client(common, find)
    if not yes:
        _ask(list(found.values()))

    async def remove(client: "Client") -> None:
        for replica_id, wanted in found.items():
            await client.replicas.delete(replica_id)
            say(f"{wanted} is gone.")

    with_client(common, remove)
    if common.json:
        put_json({"success": True, "deleted": [str(replica_id) for replica_id in found]})


def _ask(names: list[str]) -> None:
    if not sys.stdin.isatty():
        raise UsageFault("Deleting asks first, and stdin is no terminal.", "Add --yes.")
    what = safe_line(", ".join(names))
    click.confirm(f"Delete {what} with all files?", abort=True, err=True)
