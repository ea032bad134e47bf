"""`qd keys ls`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.keys.which import organization_option, with_keys
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.words import ago

if TYPE_CHECKING:
    from quarterdeck.client.api_keys import ApiKeys
    from quarterdeck.wire.api_keys import ApiKey


@click.command(name="ls")
@organization_option
@common_options
def command(common: Common, organization: bool) -> None:
    """List keys, newest first."""

    async def read(keys: "ApiKeys") -> "list[ApiKey]":
        return [key async for key in keys.all()]

    found = with_keys(common, organization, read)
    if common.json:
        put_json({"api_keys": [k.model_dump(mode="json") for k in found], "total": len(found)})
        return
    if not found:
        say("No keys. Make one with: qd keys create NAME.")
        return
    table(["NAME", "KEY", "MADE", "USED", "ID"], map(_row, found))


def _row(key: "ApiKey") -> list[str]:
    used = "never" if key.last_used_at is None else ago(key.last_used_at)
    return [key.name, f"{key.key_prefix}...", ago(key.created_at), used, str(key.id)]
