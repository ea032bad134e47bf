"""`qd automation enable`."""

import click

from quarterdeck.cli.automation.find import automations_argument
from quarterdeck.cli.automation.switch import switch
from quarterdeck.cli.options import Common, common_options


@click.command(name="enable")
@automations_argument
@common_options
def command(common: Common, automations: tuple[str, ...]) -> None:
    """Switch automations on. Why the service switched one off is forgotten."""
    switch(common, automations, enabled=True)
