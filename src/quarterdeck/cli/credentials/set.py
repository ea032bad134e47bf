"""`qd credentials set`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.credentials.which import whose_option, with_credentials
from quarterdeck.cli.env.inputs import read_secret
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.credentials import CredentialSet


@click.command(name="set")
@whose_option
@click.argument("provider", metavar="PROVIDER")
@common_options
def command(common: Common, organization: bool, provider: str) -> None:
    """Set the key of a provider. It is read from stdin, or asked for without showing it."""
    key = read_secret(f"Key of {provider}")

    async def write(client: "Client", shared: bool) -> "CredentialSet":
        done = await client.credentials.set(provider, key, shared=shared)
        whose = "The organization's" if shared else "Your"
        say(f"{whose} key of {provider} is set. Replicas get it when they start.")
        return done

    done = with_credentials(common, organization, write)
    if common.json:
        put_json(done)
