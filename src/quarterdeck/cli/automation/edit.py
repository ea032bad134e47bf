"""`qd automation edit`."""

from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.automation.bodies import checked, with_ids
from quarterdeck.cli.automation.document import read_document
from quarterdeck.cli.automation.editor import edit_in_editor
from quarterdeck.cli.automation.find import automation_argument, find_automation
from quarterdeck.cli.automation.settings import Given, setting_options
from quarterdeck.cli.automation.triggers import laid_over
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation

CLEARABLE = {
    "description": "description",
    "agent": "agent_provider",
    "model": "model",
    "debounce": "debounce_seconds",
    "stop-after": "workspace_auto_stop_minutes",
    "size": "workspace_size",
}


@click.command(name="edit")
@automation_argument
@click.option("--name", metavar="NAME")
@setting_options
@click.option(
    "--without",
    metavar="TRIGGER",
    multiple=True,
    help="Take a trigger away: cron, webhook, or an event.",
)
@click.option("--clear", type=click.Choice(list(CLEARABLE)), multiple=True, help="Make it empty.")
@common_options
def command(
    common: Common,
    automation: str,
    name: str | None,
    without: tuple[str, ...],
    clear: tuple[str, ...],
    **options: Any,
) -> None:
    """Change what is given of an automation; without options all of it in an editor.

    A file changes the settings that it names. In the editor, a line that is left out clears its
    setting.
    """
    given = Given(**options)
    settings: dict[str, Any] = dict.fromkeys(CLEARABLE[one] for one in clear)
    if given.file is not None:
        settings |= read_document(read_text(given.file), given.file)
    settings |= given.settings()
    if name is not None:
        settings["name"] = name
    says_more = bool(given.config()) or _says_triggers(given, without)
    if not settings and not says_more:
        changed = edit_in_editor(common, automation)
    else:
        changed = _change(common, automation, settings, given, without)
    if changed is None:
        say("Nothing is changed.")
    elif common.json:
        put_json({"automation": changed})
    else:
        say(f"{changed.name} is changed.")


def _says_triggers(given: Given, without: tuple[str, ...]) -> bool:
    """Whether options say anything of triggers."""
    asked = (given.cron, given.timezone, given.webhook, given.events, given.repositories, without)
    return any(asked)


def _change(
    common: Common,
    automation: str,
    settings: dict[str, Any],
    given: Given,
    without: tuple[str, ...],
) -> "Automation":
    from quarterdeck.wire.automations import ChangeAutomation

    async def change(client: "Client") -> "Automation":
        found = await find_automation(client, automation)
        _check_scope(settings, found)
        there = [one.model_dump(mode="json") for one in found.triggers]
        triggers = laid_over(settings.get("triggers", there), given, without)
        wanted = settings if triggers is None else {**settings, "triggers": triggers}
        if config := given.config():
            wanted = {**wanted, "config": {**settings.get("config", found.config), **config}}
        body = checked(ChangeAutomation, await with_ids(client, wanted), given.file)
        return await client.automations.change(found.id, body)

    return with_client(common, change)


def _check_scope(settings: dict[str, Any], automation: "Automation") -> None:
    """Takes the scope out: a file may say it, but it stays what it is."""
    scope = settings.pop("scope", None)
    if scope not in (None, "user" if automation.user_id else "org"):
        raise UsageFault("scope: it cannot be changed.", "Make another automation.")
