"""`qd notify`: where a person's notifications go."""

import sys

import click

from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.running import with_client


@click.group(name="notify")
def command() -> None:
    """Be told elsewhere of turns that ended, questions that wait and replicas that failed."""


@command.command(name="set")
@click.argument("url", metavar="URL", default="-")
@common_options
def set_target(common: Common, url: str) -> None:
    """Send notifications to an address, such as ntfy://host/topic; - reads it from stdin.

    An address holds secrets: given as an argument, it can be seen in the list of processes.
    """
    url = sys.stdin.readline().strip() if url == "-" else url
    if not url:
        raise UsageFault("There is no address.", "Give one, or write it to stdin.")
    with_client(common, lambda client: client.chatapp.connect(url))
    _done(common, "Notifications go there from now on. Try it with: qd notify test.")


@command.command(name="show")
@common_options
def show(common: Common) -> None:
    """Say whether notifications go anywhere. The address itself is not told."""
    found = with_client(common, lambda client: client.chatapp.get())
    if common.json:
        put_json(found)
    elif found.connected:
        put(found.service or "connected")
    else:
        say("Notifications go nowhere. Set a target with: qd notify set.")


@command.command(name="rm")
@common_options
def remove(common: Common) -> None:
    """Send no notifications any more."""
    with_client(common, lambda client: client.chatapp.disconnect())
    _done(common, "No notifications are sent any more.")


@command.command(name="test")
@common_options
def test(common: Common) -> None:
    """Send a notification now."""
    if not with_client(common, lambda client: client.chatapp.test()):
        raise NotDone("The notification was not taken.", "Check the address: qd notify set.")
    _done(common, "It was taken.")


def _done(common: Common, sentence: str) -> None:
    if common.json:
        put_json({"success": True})
    say(sentence)
