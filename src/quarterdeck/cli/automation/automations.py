"""`qd automation`: list, show, switch and delete automations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import click

from quarterdeck.cli.clients import remove_all, with_client
from quarterdeck.cli.lookup import automation_argument, automations_argument, find_automation
from quarterdeck.cli.options import Common, common_options, masked, reveal_option
from quarterdeck.cli.output import print_json, print_message, print_table, print_text, safe_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quarterdeck.client import Client
    from quarterdeck.wire.automation_runs import Execution
    from quarterdeck.wire.automations import Automation, StoredTrigger


_CLOCK = "%a %Y-%m-%d %H:%M"


def _trigger_text(trigger: "StoredTrigger") -> str:
    """Return a trigger as text: `cron 0 9 * * 1-5 Europe/Berlin`, `webhook`, `pull_request.opened`."""
    config = trigger.config
    match trigger.type:
        case "cron":
            return f"cron {config.get('schedule')} {config.get('timezone', 'UTC')}"
        case "custom":
            return "webhook"
        case "host-a" | "host-b":
            return str(config.get("event"))
        case other:
            return other


def _filter_texts(trigger: "StoredTrigger", repositories: "Mapping[UUID, str]") -> list[str]:
    """Return the filters of a trigger as texts; ids without a name stay."""
    config, names = trigger.config, {str(id): name for id, name in repositories.items()}
    texts: list[str] = []
    if (ids := config.get("repository_ids")) is not None:
        shown = ", ".join(names.get(str(id), str(id)) for id in ids)
        texts.append(f"repositories: {shown or 'none'}")
    if actors := config.get("excluded_actors"):
        texts.append(f"not by {', '.join(map(str, actors))}")
    if config.get("group_pr_events"):
        texts.append("later events go to the same replica")
    if config.get("check") is False:
        texts.append("no check")
    return texts


def local_clock(moment: datetime) -> str:
    """Return a time in the time zone of this machine."""
    return moment.astimezone().strftime(f"{_CLOCK} %Z")


def duration(length: timedelta) -> str:
    """Return a duration in its two largest units: `8s`, `3m05s`, `2h04m`, `3d02h`."""
    seconds = max(0, int(length.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{seconds}s"


def run_trigger_text(run: "Execution") -> str:
    """Return the trigger of a run."""
    kind = "webhook" if run.trigger_type == "custom" else run.trigger_type
    return " ".join(filter(None, (kind, run.trigger_event))) or "-"


def run_state(run: "Execution") -> str:
    """Return the state of a run: `awaiting approval`, `canceled`, `timeout`; else its status."""
    if run.awaiting_approval:
        return "awaiting approval"
    return run.reason or run.status


def _state(automation: "Automation") -> str:
    """Return `on`, `off`, or `switched off` for one that the service switched off."""
    if automation.enabled:
        return "on"
    return "switched off" if automation.disabled_reason else "off"


def check_text(run: "Execution") -> str:
    """Return the conclusion of a run's check, else the check's status."""
    if run.check is None:
        return "-"
    return run.check.conclusion or run.check.status


_SHOWN = 5


def next_fires(automation: "Automation", now: datetime, count: int = _SHOWN) -> list[datetime]:
    """Return the next times in UTC, also of one that is switched off.

    For a schedule that cannot be parsed here, this is the service's next time, if any.
    """
    from zoneinfo import ZoneInfoNotFoundError

    from cronsim import CronSimError

    from quarterdeck.schedules import coming_fires

    expression, zone = automation.cron_expression, automation.cron_timezone
    if expression is None:
        return []
    try:
        return coming_fires(expression, zone or "UTC", now, count)
    except (CronSimError, ZoneInfoNotFoundError, ValueError, OSError):
        next_at = automation.cron_next_fire_at
        return [] if next_at is None else [next_at]


def both_clocks(moment: datetime, zone: str | None) -> str:
    """Return a time in the zone of the schedule, and in that of this machine if it reads differently."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = zone or "UTC"
    try:
        there = moment.astimezone(ZoneInfo(name)).strftime(_CLOCK)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return local_clock(moment)
    here = local_clock(moment)
    return here if here == f"{there} {name}" else f"{there} {name}, here {here}"


@click.command(name="ls")
@click.option("--scope", type=click.Choice(["org", "user", "all"]), default="all")
@click.option("--enabled/--disabled", default=None, help="Filter by state.")
@click.option(
    "--trigger", metavar="TYPE", help="Filter by trigger: cron, custom, host-a or host-b."
)
@click.option("--search", metavar="TEXT", help="Filter by name or description.")
@reveal_option
@common_options
def ls(
    common: Common,
    scope: Literal["org", "user", "all"],
    enabled: bool | None,
    trigger: str | None,
    search: str | None,
    reveal: bool,
) -> None:
    """List automations, newest first: shared and personal ones."""

    async def read(client: "Client") -> "list[Automation]":
        automations = client.automations.all(
            scope=scope, enabled=enabled, trigger_type=trigger, search=search
        )
        return [automation async for automation in automations]

    automations = with_client(common, read)
    if common.json:
        plain = [_json(automation, reveal) for automation in automations]
        print_json({"automations": plain, "total": len(plain)})
    elif not automations:
        print_message("No automations. Create one with: qd automation create.")
    else:
        print_table(["NAME", "STATE", "TRIGGERS", "NEXT", "SCOPE", "ID"], map(_row, automations))


def _json(automation: "Automation", reveal: bool) -> dict[str, Any]:
    token, record = automation.webhook_token, automation.model_dump(mode="json")
    if token is None or reveal:
        return record
    hidden, url = masked(token, reveal), automation.webhook_url
    return {**record, "webhook_token": hidden, "webhook_url": url and url.replace(token, hidden)}


def _row(automation: "Automation") -> list[str]:
    return [
        automation.name,
        _state(automation),
        ", ".join(map(_trigger_text, automation.triggers)) or "-",
        local_clock(automation.cron_next_fire_at) if automation.cron_next_fire_at else "-",
        "user" if automation.user_id else "org",
        str(automation.id)[:8],
    ]


NEW_PUSH = {"cancel": "cancels the earlier run", "queue": "waits for the earlier run"}
TRUST = {
    "members": "members; pull requests from other people's forks wait for approval",
    "approved": "members and authors approved before; other people's forks wait for approval",
    "all": "everybody; pull requests from forks do not wait for approval",
}


@click.command(name="show")
@automation_argument
@common_options
def show(common: Common, automation: str) -> None:
    """Show an automation with its triggers, next runs and webhook.

    Anyone who knows the webhook's URL can call it, unless it has a secret.
    """
    from quarterdeck.store.automation_draft import webhook_path
    from quarterdeck.wire.base import utc_now

    async def read(client: "Client") -> "tuple[Automation, _Names]":
        record = await find_automation(client, automation)
        repositories = {
            repository.id: repository.name for repository in await client.repositories.list()
        }
        endpoint = client.connection.endpoint
        return record, _Names(await _environment(client, record), repositories, endpoint)

    record, names = with_client(common, read)
    moments = next_fires(record, utc_now())
    if common.json:
        fire_times = [moment.isoformat().replace("+00:00", "Z") for moment in moments]
        path = webhook_path(record)
        print_json({"automation": record, "next_fires": fire_times, "webhook_path": path})
        return
    for label, value in _lines(record, names):
        print_text(f"{label:<14} {safe_line(value)}")
    for moment in moments:
        print_text(f"{'coming':<14} {both_clocks(moment, record.cron_timezone)}")
    print_text(f"{'prompt':<14} {safe_line(record.prompt)}")


@dataclass(frozen=True)
class _Names:
    """Names for the ids of an automation, and the endpoint of the service."""

    environment: str
    repositories: "dict[UUID, str]"
    endpoint: str


async def _environment(client: "Client", automation: "Automation") -> str:
    """Return the name of its environment, or the id if that is no longer visible."""
    for environment in await client.environments.list(scope="all"):
        if environment.id == automation.environment_id:
            return environment.name
    return str(automation.environment_id)


def _lines(automation: "Automation", names: _Names) -> Iterator[tuple[str, str]]:
    from quarterdeck.store.automation_draft import webhook_call, webhook_url

    yield "name", automation.name
    yield "id", str(automation.id)
    yield "state", "on" if automation.enabled else "off; its schedule and events start nothing"
    if automation.disabled_reason:
        yield "switched off", automation.disabled_reason
    yield "scope", "personal" if automation.user_id else "organization"
    yield "environment", names.environment
    for label, value in _settings(automation):
        if value is not None and value is not False and value != "":
            yield label, "yes" if value is True else str(value)
    for trigger in automation.triggers:
        yield (
            "trigger",
            "; ".join([_trigger_text(trigger), *_filter_texts(trigger, names.repositories)]),
        )
    if url := webhook_url(automation, names.endpoint):
        yield "webhook", f"POST {url}"
    if call := webhook_call(automation, names.endpoint):
        yield "call it with", call
    for notice in automation.notices:
        yield "notice", notice


def _settings(automation: "Automation") -> Iterator[tuple[str, Any]]:
    yield "description", automation.description
    yield "agent", automation.agent_provider
    yield "model", automation.model
    yield "thinking", automation.thinking_level
    yield "plan mode", automation.plan_mode
    yield "goal mode", automation.goal_mode
    yield "fast mode", automation.fast_mode
    yield "debounce", automation.debounce_seconds and f"{automation.debounce_seconds} seconds"
    most = automation.debounce_max_seconds
    yield "debounce max", most and f"{most} seconds"
    yield "max time", automation.max_minutes and f"{automation.max_minutes} min"
    yield "at once", automation.concurrency and f"{automation.concurrency} at most"
    if any(trigger.type in ("host-a", "host-b") for trigger in automation.triggers):
        yield "new push", NEW_PUSH.get(automation.on_new_event, automation.on_new_event)
        yield "trust", TRUST.get(automation.trust, automation.trust)
    yield "kept", f"{automation.retention_days} days"
    yield "signed", automation.webhook_signed
    stop = automation.workspace_auto_stop_minutes
    yield "stops after", stop and f"{stop} idle minutes"
    yield "size", automation.workspace_size
    yield "policy", automation.workspace_lifecycle_policy
    yield "base", automation.config.get("base")
    yield "on success", automation.config.get("on_success")
    yield "push", automation.config.get("push")
    yield "skips", automation.config.get("skip_while_running") and "while a run is in progress"
    yield "asks", automation.config.get("report") and "for a verdict of each run"


def _switch(common: Common, wanted: tuple[str, ...], enabled: bool) -> None:
    """Switch all that are named, when all of them are there."""
    from quarterdeck.wire.automations import ChangeAutomation

    async def change(client: "Client") -> "list[Automation]":
        ids = {(await find_automation(client, name)).id for name in wanted}
        changes = client.automations.change
        return [await changes(id, ChangeAutomation(enabled=enabled)) for id in ids]

    changed = with_client(common, change)
    if common.json:
        print_json({"automations": changed})
        return
    for automation in changed:
        following = automation.cron_next_fire_at
        then = f"; it runs next at {local_clock(following)}" if following else ""
        print_message(f"{automation.name} is switched {'on' if enabled else 'off'}{then}.")


@click.command(name="enable")
@automations_argument
@common_options
def enable(common: Common, automations: tuple[str, ...]) -> None:
    """Turn automations on, and clear the reason why the service turned one off."""
    _switch(common, automations, enabled=True)


@click.command(name="disable")
@automations_argument
@common_options
def disable(common: Common, automations: tuple[str, ...]) -> None:
    """Turn automations off: schedules and events start nothing; waiting runs end, running ones continue."""
    _switch(common, automations, enabled=False)


@click.command(name="rotate")
@automation_argument
@common_options
def rotate(common: Common, automation: str) -> None:
    """Give an automation's webhook a new token and print how to call it.

    The previous token stops working immediately.
    """
    from quarterdeck.store.automation_draft import webhook_call

    async def work(client: "Client") -> "tuple[Automation, str]":
        record = await find_automation(client, automation)
        return await client.automations.rotate_webhook(record.id), client.connection.endpoint

    rotated, endpoint = with_client(common, work)
    if common.json:
        print_json({"automation": rotated})
        return
    print_text(webhook_call(rotated, endpoint) or "")
    for notice in rotated.notices:
        print_message(notice)


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@automations_argument
@common_options
def rm(common: Common, automations: tuple[str, ...], yes: bool) -> None:
    """Delete automations with all their runs. Their replicas are kept."""

    async def find(client: "Client") -> dict[UUID, str]:
        records = [await find_automation(client, wanted) for wanted in automations]
        return {record.id: record.name for record in records}

    remove_all(
        common,
        find,
        lambda client, id: client.automations.delete(id),
        with_what="runs",
        ask=not yes,
    )
