"""`qd automation disable`."""

import click

from quarterdeck.cli.automation.find import automations_argument
from quarterdeck.cli.automation.switch import switch
from quarterdeck.cli.options import Common, common_options


@click.command(name="disable")
@automations_argument
@common_options
def command(common: Common, automations: tuple[str, ...]) -> None:
    """Switch automations off: schedules and events start nothing, runs that wait end, runs that began go on."""
    switch(common, automations, enabled=False)
