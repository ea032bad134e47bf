"""`qd auth approve`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="approve")
@click.option("--deny", is_flag=True, help="Turn it away instead.")
@click.argument("code", metavar="CODE")
@common_options
def command(common: Common, code: str, deny: bool) -> None:
    """Let the device that shows CODE in, as you. Works where the service runs."""

    async def approve(client: "Client") -> None:
        await client.auth.approve(code, deny=deny)

    with_client(common, approve)
    say("The device was turned away." if deny else "The device is let in.")
    if common.json:
        put_json({"success": True, "approved": not deny})
