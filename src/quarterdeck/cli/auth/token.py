"""`qd auth token`."""

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.running import with_client
from quarterdeck.cli.tokens import fresh_token


@click.command(name="token")
@common_options
def command(common: Common) -> None:
    """Print a user token (JWT), good for an hour.

    The embedded service gives it at once; another one when its owner approves. With a token, send
    the organization in the header Service-Org-Id.
    """
    token = with_client(common, fresh_token)
    if common.json:
        put_json(token)
    else:
        put(token.access_token)
