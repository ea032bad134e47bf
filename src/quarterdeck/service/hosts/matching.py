"""Which automations an event of a host starts, in all organizations of the installation.

| trigger says | its automation is started by |
|---|---|
| `repository_ids` | events of these connected repositories |
| nothing, and the environment is bound | events of the repositories that it is bound to |
| nothing, and the environment is not bound | events of every connected repository |

So an automation does not run where its workspace would not hold what the event is about, unless it
asks for that.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.environments.sources import repositories_for
from quarterdeck.service.hosts.addresses import place_of
from quarterdeck.service.hosts.events import HostEvent
from quarterdeck.service.records.automations import with_trigger
from quarterdeck.service.records.repositories import named_like

Match = tuple[RowMapping, bool]
"""An automation, and whether the event may join a run of it."""


def matches(connection: Connection, host: str, event: HostEvent) -> list[Match]:
    """The automations that are switched on and wait for this."""
    found: list[Match] = []
    for organization_id, repository_ids in _connected(connection, event).items():
        for automation in with_trigger(connection, organization_id, host):
            config = _trigger(automation, host, event)
            if config is not None and _wants(connection, automation, config, repository_ids):
                found.append((automation, bool(config.get("group_pr_events"))))
    return found


def _connected(connection: Connection, event: HostEvent) -> dict[str, set[str]]:
    """The event's repository as it is connected, by organization; under several URLs perhaps."""
    places = {place for url in event.urls if (place := place_of(url))}
    name = event.repository.rpartition("/")[2]
    found: dict[str, set[str]] = {}
    for organization_id, repository in named_like(connection, name):
        if place_of(repository.url) in places:
            found.setdefault(organization_id, set()).add(str(repository.id))
    return found


def _trigger(automation: RowMapping, host: str, event: HostEvent) -> dict[str, Any] | None:
    """The configuration of the trigger that the event meets."""
    for trigger in json.loads(automation["triggers_json"]):
        config = trigger["config"]
        if trigger["type"] == host and config.get("event") == event.name:
            excluded = {one.casefold() for one in config.get("excluded_actors") or ()}
            return None if event.actor.casefold() in excluded else config
    return None


def _wants(
    connection: Connection,
    automation: RowMapping,
    config: dict[str, Any],
    repository_ids: set[str],
) -> bool:
    asked = config.get("repository_ids")
    if asked is not None:
        return not repository_ids.isdisjoint(asked)
    bound = _bound(connection, automation)
    return not bound or not repository_ids.isdisjoint(one["id"] for one in bound)


def _bound(connection: Connection, automation: RowMapping) -> Sequence[dict[str, str]]:
    owner = (automation["organization_id"], automation["user_id"])
    return repositories_for(connection, *owner, automation["environment_id"]) or ()
