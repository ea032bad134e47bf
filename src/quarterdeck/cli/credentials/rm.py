"""`qd credentials rm`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.credentials.which import whose_option, with_credentials
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="rm")
@whose_option
@click.argument("provider", metavar="PROVIDER")
@common_options
def command(common: Common, organization: bool, provider: str) -> None:
    """Remove the key of a provider; replicas that run keep it."""

    async def remove(client: "Client", shared: bool) -> None:
        await client.credentials.delete(provider, shared=shared)

    with_credentials(common, organization, remove)
    say(f"The key of {provider} is gone.")
    if common.json:
        put_json({"success": True})
