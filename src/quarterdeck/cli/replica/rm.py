"""`qd replica rm`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.removing import remove_all
from quarterdeck.cli.replica.find import find_replica

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

    remove_all(
        common,
        find,
        lambda client, id: client.replicas.delete(id),
        with_what="files",
        ask=not yes,
    )
