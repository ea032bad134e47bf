"""`qd keys rm`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.keys.which import organization_option, with_keys
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say

if TYPE_CHECKING:
    from quarterdeck.client.api_keys import ApiKeys


@click.command(name="rm")
@organization_option
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@common_options
def command(common: Common, organization: bool, keys: tuple[str, ...]) -> None:
    """Take keys away, at once. KEY is a name, an id, or what ls shows of the key itself."""

    async def remove(api: "ApiKeys") -> list[UUID]:
        found = {key.id: (key.name, key.key_prefix) async for key in api.all()}
        gone = [_only(wanted, found) for wanted in keys]
        for key_id in dict.fromkeys(gone):
            await api.delete(key_id)
            say(f"{found[key_id][0]} is gone.")
        return gone

    gone = with_keys(common, organization, remove)
    if common.json:
        put_json({"success": True, "deleted": [str(key_id) for key_id in gone]})


def _only(wanted: str, found: dict[UUID, tuple[str, str]]) -> UUID:
    shown = wanted.removesuffix("...")
    fitting = [
        key_id
        for key_id, (name, prefix) in found.items()
        if wanted in (str(key_id), name) or shown == prefix
    ]
    if len(fitting) != 1:
        what = "Several keys are" if fitting else "No key is"
        raise UsageFault(f"{what} called {wanted!r}.", "Give the id that qd keys ls shows.")
    return fitting[0]
