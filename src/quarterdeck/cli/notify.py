"""`qd notify`: where a person's notifications go."""

import sys

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_success, print_text


@click.group(name="notify")
def notify() -> None:
    """Configure notifications of ended turns, open questions and failed replicas."""


@notify.command(name="set")
@click.argument("url", metavar="URL", default="-")
@common_options
def set_target(common: Common, url: str) -> None:
    """Send notifications to a URL, such as ntfy://host/topic; - reads it from stdin.

    A URL contains secrets; as an argument it is visible in the process list.
    """
    url = sys.stdin.readline().strip() if url == "-" else url
    if not url:
        raise UsageError("Give a URL.", "Pass it as an argument or on stdin.")
    with_client(common, lambda client: client.chatapp.connect(url))
    print_success("Notification target set. Test it with: qd notify test.", common.json)


@notify.command(name="show")
@common_options
def show(common: Common) -> None:
    """Show whether a notification target is set. Its URL is not shown."""
    found = with_client(common, lambda client: client.chatapp.get())
    if common.json:
        print_json(found)
    elif found.connected:
        print_text(found.service or "connected")
    else:
        print_message("Notifications go nowhere. Set a target with: qd notify set.")


@notify.command(name="rm")
@common_options
def remove(common: Common) -> None:
    """Stop sending notifications."""
    with_client(common, lambda client: client.chatapp.disconnect())
    print_success("No notifications are sent any more.", common.json)


@notify.command(name="test")
@common_options
def test(common: Common) -> None:
    """Send a notification now."""
    if not with_client(common, lambda client: client.chatapp.test()):
        raise FailedError("The notification was not taken.", "Check the address: qd notify set.")
    print_success("Test notification sent.", common.json)
