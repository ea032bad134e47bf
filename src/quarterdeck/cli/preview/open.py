"""`qd preview open`."""

import click

from quarterdeck.cli.inside import with_inside_client
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.wire.previews import LAST_PORT, PreviewAnswer


@click.command(name="open")
@click.argument("port", metavar="PORT", type=click.IntRange(1, LAST_PORT))
@common_options
def command(common: Common, port: int) -> None:
    """Let a port of this replica be looked at; prints the address."""
    preview = with_inside_client(lambda client: client.previews.open_own(port))
    if common.json:
        put_json(PreviewAnswer(preview=preview))
    else:
        put(preview.public_url)
