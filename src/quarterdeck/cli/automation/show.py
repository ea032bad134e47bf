"""`qd automation show`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.automation.find import automation_argument, find_automation
from quarterdeck.cli.automation.timetable import both_clocks, coming
from quarterdeck.cli.automation.words import trigger_words, webhook_path
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, safe_line
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation


@click.command(name="show")
@automation_argument
@common_options
def command(common: Common, automation: str) -> None:
    """Show an automation: its triggers, the coming moments of its schedule, its webhook.

    Whoever knows the webhook's path can call it.
    """
    from quarterdeck.wire.base import utc_now

    async def read(client: "Client") -> "tuple[Automation, str]":
        found = await find_automation(client, automation)
        return found, await _environment(client, found)

    found, environment = with_client(common, read)
    moments = coming(found, utc_now())
    if common.json:
        told = [moment.isoformat().replace("+00:00", "Z") for moment in moments]
        path = webhook_path(found)
        put_json({"automation": found, "coming": told, "webhook_path": path})
        return
    for label, value in _lines(found, environment):
        put(f"{label:<14} {safe_line(value)}")
    for moment in moments:
        put(f"{'coming':<14} {both_clocks(moment, found.cron_timezone)}")
    put(f"{'prompt':<14} {safe_line(found.prompt)}")


async def _environment(client: "Client", automation: "Automation") -> str:
    """The name of its environment, or the id where that is no more to be seen."""
    for one in await client.environments.list(scope="all"):
        if one.id == automation.environment_id:
            return one.name
    return str(automation.environment_id)


def _lines(one: "Automation", environment: str) -> Iterator[tuple[str, str]]:
    yield "name", one.name
    yield "id", str(one.id)
    yield "state", "on" if one.enabled else "off; its schedule and events start nothing"
    if one.disabled_reason:
        yield "switched off", one.disabled_reason
    yield "scope", "yours alone" if one.user_id else "the organization's"
    yield "environment", environment
    for label, value in _settings(one):
        if value is not None and value is not False and value != "":
            yield label, "yes" if value is True else str(value)
    for trigger in one.triggers:
        yield "trigger", trigger_words(trigger)
    if path := webhook_path(one):
        yield "webhook", f"POST {path}"


def _settings(one: "Automation") -> Iterator[tuple[str, Any]]:
    yield "description", one.description
    yield "agent", one.agent_provider
    yield "model", one.model
    yield "thinking", one.thinking_level
    yield "plan mode", one.plan_mode
    yield "goal mode", one.goal_mode
    yield "fast mode", one.fast_mode
    yield "debounce", one.debounce_seconds and f"{one.debounce_seconds} seconds"
    stop = one.workspace_auto_stop_minutes
    yield "stops after", stop and f"{stop} idle minutes"
    yield "size", one.workspace_size
    yield "policy", one.workspace_lifecycle_policy
    yield "skips", one.config.get("skip_while_running") and "while a run is in progress"
    yield "asks", one.config.get("report") and "for a verdict of each run"
