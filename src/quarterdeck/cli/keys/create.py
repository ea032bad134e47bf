"""`qd keys create`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.keys.which import organization_option, with_keys
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say

if TYPE_CHECKING:
    from quarterdeck.client.api_keys import ApiKeys
    from quarterdeck.wire.api_keys import ApiKeyMade


@click.command(name="create")
@organization_option
@click.argument("name", metavar="NAME")
@common_options
def command(common: Common, organization: bool, name: str) -> None:
    """Make a key and print it. It is told this once and kept nowhere readable."""

    async def make(keys: "ApiKeys") -> "ApiKeyMade":
        return await keys.create(name)

    made = with_keys(common, organization, make, making=True)
    if common.json:
        put_json(made)
        return
    put(made.key)
    say("Keep it now: it is not shown again.")
