"""Changing an automation in a person's editor."""

import os
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.automation.bodies import checked, settings_of, with_ids
from quarterdeck.cli.automation.document import EMPTY, read_document, write_document
from quarterdeck.cli.automation.find import find_automation
from quarterdeck.cli.errors import CliError, UsageFault
from quarterdeck.cli.options import Common
from quarterdeck.cli.output import say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation

EDITED = "What you wrote"
EMPTIED: dict[str, Any] = {**dict.fromkeys(EMPTY), "triggers": [], "config": {}}
"""What leaving a setting out makes of it; others cannot be left out."""


def edit_in_editor(common: Common, automation: str) -> "Automation | None":
    """Opens the automation in `$VISUAL` or `$EDITOR`; sends what was changed, None for nothing.

    What was written and cannot be used is kept in a file.
    """

    async def read(client: "Client") -> "tuple[Automation, dict[str, Any]]":
        found = await find_automation(client, automation)
        return found, await settings_of(client, found)

    found, settings = with_client(common, read)
    before = write_document(settings)
    after = click.edit(before, extension=".toml")
    if after is None or after == before:
        return None
    try:
        return _send(common, found, before, after)
    except Exception as e:
        _keep(after, e)
        raise


def _send(common: Common, found: "Automation", before: str, after: str) -> "Automation | None":
    from quarterdeck.wire.automations import ChangeAutomation

    changes = changed_settings(read_document(before, EDITED), read_document(after, EDITED))
    if not changes:
        return None

    async def change(client: "Client") -> "Automation":
        body = checked(ChangeAutomation, await with_ids(client, changes), EDITED)
        return await client.automations.change(found.id, body)

    return with_client(common, change)


def changed_settings(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What a second document says otherwise than the first.

    Raises:
        UsageFault: a setting that cannot be left out was.
    """
    changes = {key: value for key, value in after.items() if before.get(key) != value}
    if "scope" in changes:
        raise UsageFault("scope: it cannot be changed.")
    for key in before.keys() - after.keys():
        if key not in EMPTIED:
            raise UsageFault(f"{key}: it cannot be left out.")
        changes[key] = EMPTIED[key]
    return changes


def _keep(text: str, error: Exception) -> None:
    from quarterdeck.client.errors import ClientError

    if not isinstance(error, CliError | ClientError):
        return
    descriptor, name = mkstemp(prefix="qd-automation-", suffix=".toml")
    os.close(descriptor)
    Path(name).write_text(text, encoding="utf-8")
    say(f"{EDITED} is kept in {name}; it can be given with --file.")
