"""Where the check of a run is kept: at the source host of a connected repository, or here alone."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqlalchemy import RowMapping

from quarterdeck.service.automations.prompts import Occasion
from quarterdeck.service.hosts.addresses import address_of
from quarterdeck.service.hosts.settings import HOST_A, HOST_B, LOCAL, HostsSettings
from quarterdeck.wire.automations import PullRequestRef
from quarterdeck.wire.repositories import Repository

HOSTS = (HOST_A, HOST_B)

_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9_.+-]+")


@dataclass(frozen=True)
class CheckPlace:
    """`repository` is the full name at the host; of a local check, what the run calls it.
    `number` is None without a pull request. `why_here` says why the host that is set up does not
    keep the check."""

    host: str
    repository: str
    number: int | None
    head_sha: str | None
    why_here: str | None = None


def wants_check(automation: RowMapping, occasion: Occasion) -> bool:
    """Whether a run has a check: with a pull request, unless its trigger says otherwise; without
    one, when its automation asks for a report."""
    if occasion.pull_request is None:
        return json.loads(automation["config_json"]).get("report") is True
    for trigger in json.loads(automation["triggers_json"]):
        config = trigger.get("config", {})
        if (trigger.get("type"), config.get("event")) == (occasion.type, occasion.event):
            return config.get("check", True)
    return True


def place_of(
    hosts: HostsSettings, occasion: Occasion, repositories: Sequence[Repository]
) -> CheckPlace:
    """Where the check of an occasion is kept; without a pull request, here.

    Only a connected repository leads to a host: the host's token is the installation's, and may
    write to more than its organizations have connected.
    A host keeps checks of commits, so one whose commit is not known is kept here.
    """
    about = occasion.pull_request
    if about is None:
        return CheckPlace(LOCAL, "", None, None)
    found = host_of(hosts, occasion, about, repositories)
    if found is None:
        return CheckPlace(LOCAL, about.repository, about.number, about.head_sha)
    host, full_name = found
    return CheckPlace(
        LOCAL if about.head_sha is None else host, full_name, about.number, about.head_sha
    )


def host_of(
    hosts: HostsSettings,
    occasion: Occasion,
    about: PullRequestRef,
    repositories: Sequence[Repository],
) -> tuple[str, str] | None:
    """The host of a pull request's repository and its full name there; None when none is set up."""
    for repository in repositories:
        found = _at_host(hosts, occasion, about, repository)
        if found is not None:
            return found
    return None


def _at_host(
    hosts: HostsSettings, occasion: Occasion, about: PullRequestRef, repository: Repository
) -> tuple[str, str] | None:
    where, full_name = address_of(repository.url) or ("", "")
    if not _is_name(full_name):
        return None
    if about.repository.lower() not in (repository.name.lower(), full_name.lower()):
        return None
    named = (occasion.type,) if occasion.type in HOSTS else HOSTS
    for host in named:
        settings = hosts.of(host)
        if settings.writable and serves(settings.api_url or "", where):
            return host, full_name
    return None


def serves(api_url: str, where: str) -> bool:
    """Whether an API is that of a repository's host: the same name, or `api.` before it."""
    host = (urlsplit(api_url).hostname or "").lower()
    return bool(host) and host.removeprefix("api.") == where.removeprefix("ssh.")


def _is_name(full_name: str) -> bool:
    """Whether it can be part of a request's path, as `owner/name` or longer."""
    words = full_name.split("/")
    return len(words) > 1 and all(map(_NAME.fullmatch, words))
