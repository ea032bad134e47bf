"""`qd auth webhook-secret`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="webhook-secret")
@common_options
def command(common: Common) -> None:
    """Print what webhook calls are signed with; admins only.

    A receiver compares X-Service-Signature with sha256=<hex HMAC-SHA256 of the raw body, keyed with
    this text>.
    """

    async def read(client: "Client") -> str:
        return await client.chatapp.webhook_secret()

    secret = with_client(common, read)
    if common.json:
        put_json({"secret": secret})
    else:
        put(secret)
