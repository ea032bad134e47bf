"""Where the check of a run is kept: at the source host of a connected repository, or only here."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping

from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.hosts.settings import HOSTS, LOCAL, HostsSettings, hosts_of
from quarterdeck.wire.automation_runs import PullRequestRef
from quarterdeck.wire.repositories import Repository


@dataclass(frozen=True)
class CheckPlace:
    """Where a check is shown.

    `repository` is the full name at the host; of a local check, the run's name for it. `number` is
    None without a pull request. `why_here` says why the configured host does not keep the check.
    """

    host: str
    repository: str
    number: int | None
    head_sha: str | None
    why_here: str | None = None


def wants_check(automation: RowMapping, occasion: TriggerEvent) -> bool:
    """Return whether a run has a check.

    With a pull request it has one unless its trigger says otherwise; without one, when its
    automation requires a report.
    """
    if occasion.pull_request is None:
        return json.loads(automation["config_json"]).get("report") is True
    for trigger in json.loads(automation["triggers_json"]):
        config = trigger.get("config", {})
        if (trigger.get("type"), config.get("event")) == (occasion.type, occasion.event):
            return config.get("check", True)
    return True


def place_of(
    hosts: HostsSettings, occasion: TriggerEvent, repositories: Sequence[Repository]
) -> CheckPlace:
    """Return where the check of an occasion is kept; without a pull request, here.

    Only a connected repository selects a host: the token belongs to the installation, and may write
    to more than its organizations have connected. A host keeps checks of commits, so one whose
    commit is not known is kept here.
    """
    about = occasion.pull_request
    if about is None:
        return CheckPlace(LOCAL, "", None, None)
    location = host_of(hosts, occasion, about, repositories)
    if location is None:
        return CheckPlace(LOCAL, about.repository, about.number, about.head_sha)
    host, full_name = location
    return CheckPlace(
        LOCAL if about.head_sha is None else host, full_name, about.number, about.head_sha
    )


def host_of(
    hosts: HostsSettings,
    occasion: TriggerEvent,
    about: PullRequestRef,
    repositories: Sequence[Repository],
) -> tuple[str, str] | None:
    """Return the host of a pull request's repository and its name there; None without a host."""
    for repository in repositories:
        found = _at_host(hosts, occasion, about, repository)
        if found is not None:
            return found
    return None


def _at_host(
    hosts: HostsSettings, occasion: TriggerEvent, about: PullRequestRef, repository: Repository
) -> tuple[str, str] | None:
    for host, full_name in hosts_of(hosts, repository.url):
        if about.repository.lower() not in (repository.name.lower(), full_name.lower()):
            continue
        expected = occasion.type not in HOSTS or host == occasion.type
        if expected and hosts.of(host).writable:
            return host, full_name
    return None
