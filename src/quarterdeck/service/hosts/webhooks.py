"""Webhooks of source hosts.

The automations that an event of a host starts, in all organizations of the installation.

| trigger says | its automation is started by |
|---|---|
| `repository_ids` | events of these connected repositories |
| nothing, and the environment is bound | events of the repositories that it is bound to |
| nothing, and the environment is not bound | events of every connected repository |

So an automation does not run when its workspace would not have the repository of the event, unless
it is configured to.

A webhook is authentic if it proves the knowledge of the host's secret.

Host A signs the body. Host B sends the secret itself, or signs as Standard Webhooks do: then only
the signature counts, and its timestamp must be recent.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.rows import with_trigger
from quarterdeck.service.db.records import readable, reading_values, stored_objects
from quarterdeck.service.environments.service import repositories_for
from quarterdeck.service.hosts.events import HostEvent
from quarterdeck.service.hosts.settings import place_of
from quarterdeck.service.repositories.rows import named_like


@dataclass(frozen=True)
class Match:
    """An automation that an event starts.

    `joins` says whether the event may join a run of it; `repository_ids` are the connected
    repositories of the automation's organization that the event is of.
    """

    automation: RowMapping
    joins: bool
    repository_ids: tuple[str, ...]


def matches(connection: Connection, host: str, event: HostEvent) -> list[Match]:
    """Return the enabled automations that an event matches, without damaged ones."""
    matched: list[Match | None] = []
    for organization_id, repository_ids in _connected(connection, event).items():
        automations = with_trigger(connection, organization_id, host)
        matched += readable(automations, partial(_match, connection, host, event, repository_ids))
    return [match for match in matched if match is not None]


def _match(
    connection: Connection,
    host: str,
    event: HostEvent,
    repository_ids: set[str],
    automation: RowMapping,
) -> Match | None:
    with reading_values():
        config = _trigger(automation, host, event)
        if config is None or not _wants(connection, automation, config, repository_ids):
            return None
        joins = bool(config.get("group_pr_events"))
    return Match(automation, joins, tuple(sorted(repository_ids)))


def _connected(connection: Connection, event: HostEvent) -> dict[str, set[str]]:
    """Return the connected repositories of an event, by organization; one may have several URLs."""
    places = {place for url in event.urls if (place := place_of(url))}
    name = event.repository.rpartition("/")[2]
    ids: dict[str, set[str]] = {}
    for organization_id, repository in named_like(connection, name):
        if place_of(repository.url) in places:
            ids.setdefault(organization_id, set()).add(str(repository.id))
    return ids


def _trigger(automation: RowMapping, host: str, event: HostEvent) -> dict[str, Any] | None:
    """Return the configuration of the trigger that the event matches."""
    for trigger in stored_objects(automation["triggers_json"]):
        config = trigger["config"]
        if trigger["type"] == host and config.get("event") == event.name:
            excluded = {actor.casefold() for actor in config.get("excluded_actors") or ()}
            return None if event.actor.casefold() in excluded else config
    return None


def _wants(
    connection: Connection,
    automation: RowMapping,
    config: dict[str, Any],
    repository_ids: set[str],
) -> bool:
    wanted_ids = config.get("repository_ids")
    if wanted_ids is not None:
        return not repository_ids.isdisjoint(wanted_ids)
    bound = _bound(connection, automation)
    return not bound or not repository_ids.isdisjoint(repository["id"] for repository in bound)


def _bound(connection: Connection, automation: RowMapping) -> Sequence[dict[str, str]]:
    owner = (automation["organization_id"], automation["user_id"])
    return repositories_for(connection, *owner, automation["environment_id"]) or ()


NEAR_SECONDS = 300
"""Maximum difference in seconds between the time of a signature and now."""
MARK = "whsec_"
_LONGEST_MOMENT = 12


def is_from_host_a(secret: str | None, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether `X-Hub-Signature-256` is the body's."""
    if not secret:
        return False
    return signs(secret, headers.get("x-hub-signature-256", ""), body)


def signs(secret: str, signature: str, body: bytes) -> bool:
    """Return whether a header's value is `sha256=` and the body's HMAC in hex."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return _same(signature, expected)


def is_from_host_b(
    secret: str | None, headers: Mapping[str, str], body: bytes, now: datetime
) -> bool:
    """Return whether `webhook-signature` is the body's; without one, `X-Gitlab-Token` the secret."""
    if not secret:
        return False
    if "webhook-signature" in headers:
        return _is_signed(secret, headers, body, now)
    return _same(headers.get("x-gitlab-token", ""), secret)


def delivery_id(headers: Mapping[str, str]) -> str | None:
    """Return a signed webhook's own id, which its signature covers; None for another."""
    return headers.get("webhook-id") if "webhook-signature" in headers else None


def _is_signed(secret: str, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
    moment = headers.get("webhook-timestamp", "")
    if not (moment.isdecimal() and moment.isascii() and len(moment) <= _LONGEST_MOMENT):
        return False
    if not headers.get("webhook-id"):
        return False
    if abs(now.timestamp() - int(moment)) > NEAR_SECONDS:
        return False
    head = f"{headers['webhook-id']}.{moment}.".encode("latin-1")
    digest = hmac.new(_key(secret), head + body, hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(digest).decode()}"
    return any(_same(signature, expected) for signature in headers["webhook-signature"].split())


def _key(secret: str) -> bytes:
    """Return the key of a secret: one with the prefix has it as base64."""
    if secret.startswith(MARK):
        try:
            return base64.b64decode(secret.removeprefix(MARK), validate=True)
        except binascii.Error:
            return secret.encode()
    return secret.encode()


def _same(given: str, expected: str) -> bool:
    """Return whether two are equal, in constant time. A header's characters are its bytes."""
    return hmac.compare_digest(given.encode("latin-1"), expected.encode())
