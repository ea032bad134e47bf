"""`qd env rm`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.env.find import find_environment
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.removing import remove_all

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("environments", metavar="ENVIRONMENT...", nargs=-1, required=True)
@common_options
def command(common: Common, environments: tuple[str, ...], yes: bool) -> None:
    """Delete environments with their parts. One that replicas are made from is refused."""

    async def find(client: "Client") -> dict[UUID, str]:
        return {(await find_environment(client, wanted)).id: wanted for wanted in environments}

    remove_all(
        common,
        find,
        lambda client, id: client.environments.delete(id),
        with_what="parts",
        ask=not yes,
    )
