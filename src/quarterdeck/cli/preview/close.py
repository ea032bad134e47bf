"""`qd preview close`."""

import click

from quarterdeck.cli.inside import with_inside_client
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.wire.previews import LAST_PORT, PreviewClosed


@click.command(name="close")
@click.argument("port", metavar="PORT", type=click.IntRange(1, LAST_PORT))
@common_options
def command(common: Common, port: int) -> None:
    """Make a port of this replica an ordinary one again."""
    with_inside_client(lambda client: client.previews.close_own(port))
    if common.json:
        put_json(PreviewClosed(port=port))
    say(f"Port {port} is closed.")
