"""Switching automations on and off."""

from typing import TYPE_CHECKING

from quarterdeck.cli.automation.find import find_automation
from quarterdeck.cli.automation.words import here
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation


def switch(common: Common, wanted: tuple[str, ...], enabled: bool) -> None:
    """Switches all that are named, when all of them are there."""
    from quarterdeck.wire.automations import ChangeAutomation

    async def change(client: "Client") -> "list[Automation]":
        found = {(await find_automation(client, one)).id for one in wanted}
        changes = client.automations.change
        return [await changes(id, ChangeAutomation(enabled=enabled)) for id in found]

    changed = with_client(common, change)
    if common.json:
        put_json({"automations": changed})
        return
    for one in changed:
        following = one.cron_next_fire_at
        then = f"; it runs next at {here(following)}" if following else ""
        say(f"{one.name} is switched {'on' if enabled else 'off'}{then}.")
