"""`qd stop`: ends the embedded service."""

import asyncio

import click

from quarterdeck.cli.background import stop_service
from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.target import find_target


@click.command(name="stop")
@common_options
def command(common: Common) -> None:
    """Stop the embedded service. Engines, agents and terminals go on; the next service finds them."""
    target = find_target(common.profile)
    if not target.embedded:
        raise UsageFault(
            f"{target.endpoint} is not the embedded service.", "Stop it where it runs."
        )
    pid = asyncio.run(stop_service(target.home))
    if common.json:
        put_json({"stopped": pid is not None, "pid": pid})
    if pid is None:
        say("No service ran.")
    else:
        say("The service has ended. Engines go on; qd or qd serve finds them again.")
