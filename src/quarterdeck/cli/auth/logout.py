"""`qd auth logout`."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.auth.login import kept_path
from quarterdeck.cli.kept_keys import forget_key, read_kept_key
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import run_with
from quarterdeck.cli.target import find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client

SHOWN = 7
"""How much of a key its record shows."""


@click.command(name="logout")
@common_options
def command(common: Common) -> None:
    """Take the key away that qd auth login keeps for the profile, there and here."""
    target = find_target(common.profile)
    path = kept_path(target)
    key = read_kept_key(path)
    if key is not None:
        removed = run_with(target, lambda client: _remove(client, key))
        forget_key(path)
        say("Logged out." if removed else "Logged out. The service knew the key no more.")
    else:
        removed = False
        say(f"Profile {target.name} keeps no key.")
    if common.json:
        put_json({"success": True, "removed": removed})


async def _remove(client: "Client", key: str) -> bool:
    from quarterdeck.client.errors import Unauthorized

    try:
        ids = [one.id async for one in client.api_keys.all() if one.key_prefix == key[:SHOWN]]
        return await _delete(client, ids)
    except Unauthorized:
        return False


async def _delete(client: "Client", ids: list[UUID]) -> bool:
    # Four characters tell keys of one user apart nearly always; a wrong one is never taken away.
    if len(ids) != 1:
        return False
    await client.api_keys.delete(ids[0])
    return True
