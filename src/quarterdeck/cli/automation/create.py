"""`qd automation create`."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from quarterdeck.cli.automation.bodies import checked, with_ids
from quarterdeck.cli.automation.document import read_document
from quarterdeck.cli.automation.settings import Given, setting_options
from quarterdeck.cli.automation.timetable import both_clocks
from quarterdeck.cli.automation.triggers import laid_over
from quarterdeck.cli.automation.words import webhook_path
from quarterdeck.cli.env.inputs import read_text
from quarterdeck.cli.errors import UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, say
from quarterdeck.cli.repo.here import repository_here
from quarterdeck.cli.running import with_client
from quarterdeck.cli.target import find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation


@click.command(name="create")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "--repo", metavar="PATH|URL", help="Repository without --env; default: the one you stand in."
)
@click.option("--personal", is_flag=True, help="For you alone.")
@click.option("--disabled", is_flag=True, help="Switched off at first.")
@setting_options
@common_options
def command(
    common: Common,
    name: str | None,
    repo: str | None,
    personal: bool,
    disabled: bool,
    **options: Any,
) -> None:
    """Make an automation and print its id. Options come before what a file says."""
    from quarterdeck.store.creation import Wish, environment_for
    from quarterdeck.wire.automations import CreateAutomation

    given = Given(**options)
    settings = _settings(given, name)
    if repo and "environment" in settings:
        raise UsageFault("Give one of --repo and an environment.")
    target = find_target(common.profile)
    # The whole is looked at before anything is made for it.
    checked(CreateAutomation, settings | {"environment_id": UUID(int=0)}, given.file)
    url = None if "environment" in settings else repository_here(repo, target)
    if personal:
        settings["scope"] = "user"
    if disabled:
        settings["enabled"] = False

    async def make(client: "Client") -> "Automation":
        found = await with_ids(client, settings)
        if "environment_id" not in found:
            found["environment_id"], _ = await environment_for(client, Wish(repository_url=url))
        body = checked(CreateAutomation, found, given.file)
        return await client.automations.create(body)

    made = with_client(common, make)
    if common.json:
        put_json({"automation": made})
        return
    put(str(made.id))
    if made.cron_next_fire_at is not None:
        say(f"It runs next at {both_clocks(made.cron_next_fire_at, made.cron_timezone)}.")
    if path := webhook_path(made):
        say(f"Its webhook: POST {path}")


def _settings(given: Given, name: str | None) -> dict[str, Any]:
    settings = {} if given.file is None else read_document(read_text(given.file), given.file)
    settings |= given.settings()
    if name is not None:
        settings["name"] = name
    triggers = laid_over(settings.get("triggers", []), given)
    if triggers is not None:
        settings["triggers"] = triggers
    if config := given.config():
        settings["config"] = {**settings.get("config", {}), **config}
    return settings
