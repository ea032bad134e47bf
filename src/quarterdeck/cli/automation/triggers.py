"""Triggers from options, laid over those that are there."""

from collections.abc import Sequence
from typing import Any

from quarterdeck.cli.automation.settings import Given
from quarterdeck.cli.errors import UsageFault

Trigger = dict[str, Any]
WEBHOOK = "webhook"
"""What a person calls the trigger `custom`."""


def laid_over(
    there: Sequence[Trigger], given: Given, without: Sequence[str] = ()
) -> list[Trigger] | None:
    """The triggers that follow; None when the options say nothing of triggers.

    Raises:
        UsageFault: options that say nothing without others, or name what is not there.
    """
    if given.repositories and not given.events:
        raise UsageFault("--repository says nothing without --on.")
    found = [one for one in there if name_of(one) not in without]
    missing = set(without) - {name_of(one) for one in there}
    if missing:
        raise UsageFault(f"It has no trigger {min(missing)!r}.")
    if given.cron is not None or given.timezone is not None:
        found = _put(found, _cron(found, given))
    if given.webhook and not any(name_of(one) == WEBHOOK for one in found):
        found.append({"type": "custom", "config": {}})
    for event in given.events:
        found = _put(found, _event(found, event, given.repositories))
    said = without or given.cron or given.timezone or given.webhook or given.events
    return found if said else None


def name_of(trigger: Trigger) -> str:
    """What tells a trigger from the others of its automation: `cron`, `webhook`, an event."""
    match trigger.get("type"):
        case "host-a" | "host-b":
            return str(trigger.get("config", {}).get("event"))
        case "custom":
            return WEBHOOK
        case other:
            return str(other)


def _put(there: list[Trigger], trigger: Trigger) -> list[Trigger]:
    """In the place of the one of the same name, or at the end."""
    names = [name_of(one) for one in there]
    if name_of(trigger) not in names:
        return [*there, trigger]
    place = names.index(name_of(trigger))
    return [*there[:place], trigger, *there[place + 1 :]]


def _config(there: Sequence[Trigger], name: str) -> dict[str, Any]:
    found = [one.get("config") for one in there if name_of(one) == name]
    return dict(found[0] or {}) if found else {}


def _cron(there: Sequence[Trigger], given: Given) -> Trigger:
    config = dict(_config(there, "cron"))
    if given.cron is None and not config:
        raise UsageFault("--timezone says nothing without --cron.")
    if given.cron is not None:
        config["schedule"] = given.cron
    if given.timezone is not None:
        config["timezone"] = given.timezone
    return {"type": "cron", "config": config}


def _event(there: Sequence[Trigger], event: str, repositories: Sequence[str]) -> Trigger:
    config = {**_config(there, event), "event": event}
    if repositories:
        config["repositories"] = list(repositories)
    return {"type": "host-a" if event.startswith("pull_request.") else "host-b", "config": config}
