"""`qd automation rm`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.automation.find import automations_argument, find_automation
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.removing import remove_all

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@automations_argument
@common_options
def command(common: Common, automations: tuple[str, ...], yes: bool) -> None:
    """Delete automations with all their runs. Replicas that these made stay."""

    async def find(client: "Client") -> dict[UUID, str]:
        found = [await find_automation(client, wanted) for wanted in automations]
        return {one.id: one.name for one in found}

    remove_all(
        common,
        find,
        lambda client, id: client.automations.delete(id),
        with_what="runs",
        ask=not yes,
    )
