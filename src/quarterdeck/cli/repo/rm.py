"""`qd repo rm`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.env.find import find_repository
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@click.argument("repositories", metavar="REPOSITORY...", nargs=-1, required=True)
@common_options
def command(common: Common, repositories: tuple[str, ...]) -> None:
    """Disconnect repositories; replicas that have them keep them."""

    async def remove(client: "Client") -> list[UUID]:
        found = {await find_repository(client, wanted): wanted for wanted in repositories}
        for repository_id, wanted in found.items():
            await client.repositories.disconnect(repository_id)
            say(f"{wanted} is disconnected.")
        return list(found)

    gone = with_client(common, remove)
    if common.json:
        put_json({"success": True, "deleted": [str(one) for one in gone]})
