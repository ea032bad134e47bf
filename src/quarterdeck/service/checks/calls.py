"""Calls to source hosts, where checks are kept, and the changes of checks that cause calls.

States of a check. Every change is made by `_change`, within a write transaction.

| from | by | to |
|---|---|---|
| - | its run is about to start | open |
| open, abandoned, reported | a report, while it is the newest of its subject | reported |
| open | a later run for the same subject | superseded |
| open | its run ends without a report | abandoned |

Writes are serialized, so a check that is read and changed in one write has no other writer. A
second report replaces the first, also after the run has ended: an agent may change its verdict.
None counts once a later run for the same pull request was started.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.checks.rows import (
    ABANDONED,
    OPEN,
    REPORTED,
    SUPERSEDED,
    add_check,
    change_check,
    check_of,
    drop_settled,
    find_check,
    newest_of,
    open_of_automation,
)
from quarterdeck.service.db.records import stored_json, stored_objects
from quarterdeck.service.formats import storable
from quarterdeck.service.hosts.settings import HOSTS, LOCAL, HostsSettings, hosts_of
from quarterdeck.service.http_client import AnswerError, read_answer
from quarterdeck.wire.automation_runs import (
    UNCOUNTED_REASONS,
    ExecutionStatus,
    PullRequestRef,
    ReportCheck,
)
from quarterdeck.wire.repositories import Repository

if TYPE_CHECKING:
    import httpx


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
        return stored_json(automation["config_json"], dict).get("report") is True
    for trigger in stored_objects(automation["triggers_json"]):
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
        place = _at_host(hosts, occasion, about, repository)
        if place is not None:
            return place
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


ANSWER_BYTES = 4 << 20


class HostError(Exception):
    """A host could not be called; the text says why, without an address."""


class CheckRefusedError(HostError):
    """It answered with a status other than success."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"it answered {status}")
        self.status = status
        self.body = body


@dataclass(frozen=True)
class HostCall:
    """A request of a host's REST API; `path` is relative to the API's base."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None


async def make(client: "httpx.AsyncClient", api_url: str, call: HostCall) -> dict[str, Any]:
    """Make a call; `{}` for an answer that is not a JSON object.

    Raises:
        HostError: it could not be made, or was not accepted.
    """
    import httpx

    try:
        async with client.stream(
            call.method,
            api_url.rstrip("/") + call.path,
            headers=dict(call.headers),
            json=call.body,
            params=call.query,
        ) as answer:
            body = _object(await read_answer(answer, ANSWER_BYTES))
            if not answer.is_success:
                raise CheckRefusedError(answer.status_code, body)
            return body
    except AnswerError as e:
        raise HostError(str(e)) from e
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as e:
        raise HostError(type(e).__name__) from e


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def id_in(answer: Mapping[str, Any]) -> str | None:
    """Return the number that a host gave its record; None when it gave none."""
    number = answer.get("id")
    return str(number) if isinstance(number, int) and not isinstance(number, bool) else None


Row = RowMapping

NEUTRAL, FAILURE, CANCELLED = "neutral", "failure", "cancelled"
SUMMARY_CHARACTERS = 60_000

LATER = "A later run for this pull request replaces it."
REMOVED = "The automation was deleted before the run had ended."
HEAD_UNKNOWN = "The check is kept here: the host did not report the pull request's head."
UNSAID = "No verdict was reported."
FAILED = "The run failed before it had a verdict."
ENDED = "The run was ended before it had a verdict."


def open_check(
    connection: Connection,
    execution: Row,
    automation: Row,
    place: CheckPlace,
    now: str,
) -> tuple[str, list[str]]:
    """Open the check of a run that is about to start, or find the one of an earlier attempt.

    Returns its id, and the runs whose checks are superseded by it.
    """
    subject = _subject(execution, automation, place)
    known = check_of(connection, execution["id"])
    if known is not None:
        if known["subject"] == subject and place.head_sha in (None, known["head_sha"]):
            return known["id"], []
        _let_go(connection, known, now)  # a later event was put into the waiting run
    before = [row for row in newest_of(connection, subject) if _gives_way(row, place)]
    earlier = [_supersede(connection, row, now) for row in before]
    check_id = str(uuid4())
    at_host = place.host != LOCAL
    add_check(
        connection,
        id=check_id,
        organization_id=execution["organization_id"],
        execution_id=execution["id"],
        automation_id=automation["id"],
        check_run_id=check_id,
        host=place.host,
        host_asked=False,
        repository=place.repository,
        subject=subject,
        head_sha=place.head_sha,
        name=automation["name"],
        token_hash="",  # no token opens it before its run is stored as started
        status=OPEN,
        title=place.why_here and HEAD_UNKNOWN,
        summary=place.why_here,
        superseded=False,
        revision=0,
        unsent=at_host,
        attempts=0,
        next_at=now if at_host else None,
        opened_at=now,
    )
    return check_id, [execution_id for execution_id in earlier if execution_id is not None]


def _gives_way(row: Row, place: CheckPlace) -> bool:
    """Return whether a check is superseded by a newly opened one.

    One at a host is not when the new one is kept elsewhere: nothing would replace it.
    """
    return place.why_here is None or row["host"] == LOCAL


def _subject(execution: Row, automation: Row, place: CheckPlace) -> str:
    """Return the subject of a check: a pull request; without one, the run itself."""
    if place.number is None:
        return f"{automation['id']} {execution['id']}"
    return f"{automation['id']} {place.repository.lower()}#{place.number}"


def give_out(connection: Connection, check_id: str, check_run_id: str, token_hash: str) -> None:
    """Note that the run was stored as started with this id and token in its prompt."""
    change_check(connection, check_id, check_run_id=check_run_id, token_hash=token_hash)


def report(connection: Connection, row: Row, body: ReportCheck, now: str) -> bool:
    """Store a verdict; False when a later run has superseded the check."""
    if row["superseded"]:
        return False
    verdict = {
        "status": REPORTED,
        "conclusion": body.conclusion,
        "title": body.title,
        "summary": body.summary or body.title,
    }
    if any(row[name] != value for name, value in verdict.items()):
        _change(connection, row, now, **verdict)
    return True


def run_ended(connection: Connection, execution: Row, now: str) -> None:
    """Close the check of a run that has just ended, unless it was reported.

    The verdict of a failed run is unknown, so it does not pass. A run that a person or a newer push
    ended has not failed: its check is cancelled, which does not pass either.
    """
    row = check_of(connection, execution["id"])
    if row is None or row["status"] != OPEN:
        return
    if execution["status"] == ExecutionStatus.COMPLETED:
        _abandon(connection, row, NEUTRAL, UNSAID, UNSAID, now)
    elif execution["reason"] in UNCOUNTED_REASONS:
        _abandon(connection, row, CANCELLED, ENDED, execution["error"] or ENDED, now)
    else:
        error = (execution["error"] or FAILED)[:SUMMARY_CHARACTERS]
        _abandon(connection, row, FAILURE, FAILED, error, now)


def close_checks_of_automation(connection: Connection, automation_id: str, now: str) -> None:
    """Close the checks of an automation that is being deleted; call before its row is removed."""
    for row in open_of_automation(connection, automation_id):
        _abandon(connection, row, CANCELLED, REMOVED, REMOVED, now)


def _supersede(connection: Connection, row: Row, now: str) -> str | None:
    """Close the check because a later run starts; return its run's id if it was still open."""
    if row["status"] != OPEN:
        change_check(connection, row["id"], superseded=True)
        return None
    values = {"status": SUPERSEDED, "superseded": True, "conclusion": CANCELLED}
    _change(connection, row, now, title=LATER, summary=LATER, **values)
    return row["execution_id"]


def _let_go(connection: Connection, row: Row, now: str) -> None:
    """Detach a check whose run gets another one; it stays until its host is notified of the end."""
    _supersede(connection, row, now)
    change_check(connection, row["id"], execution_id=None)
    drop_settled(connection)


def _abandon(
    connection: Connection, row: Row, conclusion: str, title: str, summary: str, now: str
) -> None:
    values = {"status": ABANDONED, "conclusion": conclusion, "title": title}
    _change(connection, row, now, summary=storable(summary), **values)


def _change(connection: Connection, row: Row, now: str, **values: Any) -> None:
    """Change a check's state, here and nowhere else, so that its host is always informed."""
    current = find_check(connection, row["id"])
    assert current is not None and current["revision"] == row["revision"]  # in the same write
    at_host = row["host"] != LOCAL
    change_check(
        connection,
        row["id"],
        revision=row["revision"] + 1,
        closed_at=now,
        unsent=at_host,
        attempts=0,
        next_at=now if at_host else None,
        **values,
    )
