"""`qd automation ls`."""

from typing import TYPE_CHECKING, Any, Literal

import click

from quarterdeck.cli.automation.words import here, triggers_words
from quarterdeck.cli.env.masking import reveal_option, shown
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation


@click.command(name="ls")
@click.option("--scope", type=click.Choice(["org", "user", "all"]), default="all")
@click.option("--enabled/--disabled", default=None, help="Only those switched on, or off.")
@click.option("--trigger", metavar="TYPE", help="cron, custom, host-a, host-b: only those.")
@click.option("--search", metavar="TEXT", help="Only those whose name or description has it.")
@reveal_option
@common_options
def command(
    common: Common,
    scope: Literal["org", "user", "all"],
    enabled: bool | None,
    trigger: str | None,
    search: str | None,
    reveal: bool,
) -> None:
    """List automations, newest first: the shared ones, and those that are yours alone."""

    async def read(client: "Client") -> "list[Automation]":
        found = client.automations.all(
            scope=scope, enabled=enabled, trigger_type=trigger, search=search
        )
        return [one async for one in found]

    found = with_client(common, read)
    if common.json:
        plain = [_plain(one, reveal) for one in found]
        put_json({"automations": plain, "total": len(plain)})
    elif not found:
        say("No automations. Make one with: qd automation create.")
    else:
        table(["NAME", "STATE", "TRIGGERS", "NEXT", "SCOPE", "ID"], map(_row, found))


def _plain(one: "Automation", reveal: bool) -> dict[str, Any]:
    token = one.webhook_token
    return {**one.model_dump(mode="json"), "webhook_token": token and shown(token, reveal)}


def _row(one: "Automation") -> list[str]:
    return [
        one.name,
        "on" if one.enabled else "failing" if one.disabled_reason else "off",
        triggers_words(one),
        here(one.cron_next_fire_at) if one.cron_next_fire_at else "-",
        "user" if one.user_id else "org",
        str(one.id)[:8],
    ]
