"""Checks of pull requests: opened, reported, delivered.

The head of a pull request, read from its host: the event of a run may not include it.

A comment at host A does not, nor does a person who starts a run.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.prompts import Ticket, TriggerEvent
from quarterdeck.service.automations.run_rows import find_execution
from quarterdeck.service.automations.runs import store_run_change
from quarterdeck.service.checks.calls import (
    HostCall,
    HostError,
    give_out,
    make,
    open_check,
    place_of,
    report,
)
from quarterdeck.service.checks.hosts import headers_of_host_a, headers_of_host_b
from quarterdeck.service.checks.rows import (
    change_check,
    checks_named,
    drop_settled,
    find_check,
    is_held,
    shares_its_place,
)
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.hosts.events import as_line, as_sha
from quarterdeck.service.hosts.host_a import fetch_ref_of_host_a
from quarterdeck.service.hosts.host_b import fetch_ref_of_host_b
from quarterdeck.service.hosts.settings import HOST_A, HOST_B, HostSettings
from quarterdeck.service.identity.authentication import hash_of
from quarterdeck.service.identity.service import Caller
from quarterdeck.service.repositories.rows import list_repositories
from quarterdeck.service.system_rows import server_moment
from quarterdeck.wire.automation_runs import CheckReported, ExecutionStatus, ReportCheck
from quarterdeck.wire.errors import ErrorCode

if TYPE_CHECKING:
    import httpx


Head = dict[str, str | None]
"""Fields of a `PullRequestRef` that say what its head is and how git finds it."""


async def head_at(
    client: "httpx.AsyncClient", host: str, settings: HostSettings, repository: str, number: int
) -> Head:
    """Return the current head at the host.

    Raises:
        HostError: the host could not be called, or its answer names no commit.
    """
    read = _read_host_a if host == HOST_A else _read_host_b
    head = await read(client, settings, repository, number)
    if head["head_sha"] is None:
        raise HostError("its answer names no commit")
    return head


def fetch_ref_at(host: str, number: int) -> str:
    """Return the ref under which a host keeps the head; needs no call."""
    return fetch_ref_of_host_a(number) if host == HOST_A else fetch_ref_of_host_b(number)


def head_refs(number: int) -> tuple[str, ...]:
    """Return the refs that may be a pull request's head when its host is not known."""
    return fetch_ref_of_host_a(number), fetch_ref_of_host_b(number)


async def _read_host_a(
    client: "httpx.AsyncClient", settings: HostSettings, repository: str, number: int
) -> Head:
    path = f"/repos/{quote(repository)}/pulls/{number}"
    call = HostCall("GET", path, headers_of_host_a(settings))
    payload = await make(client, settings.api_url or "", call)
    head, base = _part(payload, "head"), _part(payload, "base")
    return {
        "head_sha": as_sha(_text(head, "sha")),
        "head_ref": as_line(_text(head, "ref")),
        "base_ref": as_line(_text(base, "ref")),
        "fetch_ref": fetch_ref_at(HOST_A, number),
    }


async def _read_host_b(
    client: "httpx.AsyncClient", settings: HostSettings, repository: str, number: int
) -> Head:
    path = f"/projects/{quote(repository, safe='')}/merge_requests/{number}"
    call = HostCall("GET", path, headers_of_host_b(settings))
    payload = await make(client, settings.api_url or "", call)
    return {
        "head_sha": as_sha(_text(payload, "sha")),
        "head_ref": as_line(_text(payload, "source_branch")),
        "base_ref": as_line(_text(payload, "target_branch")),
        "fetch_ref": fetch_ref_at(HOST_B, number),
    }


def _part(payload: dict[str, Any], name: str) -> dict[str, Any]:
    part = payload.get(name)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}


def _text(payload: dict[str, Any], name: str) -> str | None:
    text = payload.get(name)
    return text if isinstance(text, str) else None


TOKEN_BYTES = 32

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckOccasion:
    """An occasion with its pull request's head; `why_not` says why the host did not report it."""

    occasion: TriggerEvent
    why_not: str | None = None


@dataclass(frozen=True)
class OpenedCheck:
    """A check with a ticket that is valid once `store` was called in the write that starts the run.

    `occasion` is the run's, with the host's data about the pull request.
    """

    check_id: str
    ticket: Ticket
    occasion: TriggerEvent

    def store(self, connection: Connection) -> None:
        """Note that the prompt with the ticket is being stored: now only its token is valid."""
        give_out(connection, self.check_id, self.ticket.id, hash_of(self.ticket.token))


def open_known(
    connection: Connection,
    context: ServiceContext,
    execution_id: str,
    automation: RowMapping,
    known: CheckOccasion,
) -> str | None:
    """Open the check of a run whose head is known; return None when the run does not wait."""
    execution = find_execution(connection, execution_id)
    if execution is None or execution["status"] != ExecutionStatus.PENDING:
        return None  # somebody else has started it, or it was deleted
    repositories = list_repositories(connection, automation["organization_id"])
    place = replace(place_of(context.hosts, known.occasion, repositories), why_here=known.why_not)
    now = moment_text(context.clock())
    check_id, superseded = open_check(connection, execution, automation, place, now)
    for run_id in (*superseded, execution_id):
        store_run_change(connection, run_id, now)
    return check_id


async def report_check(
    context: ServiceContext, caller: Caller, check_run_id: str, body: ReportCheck
) -> CheckReported:
    """Store a verdict of the calling workspace's run; the owner is checked in the same write.

    Raises:
        ApiError: NOT_FOUND; FORBIDDEN for another workspace's check, and for another token.
    """
    now = moment_text(context.clock())

    def run(connection: Connection) -> CheckReported:
        row = _owned(connection, caller, check_run_id, body.token)
        reported = report(connection, row, body, now)
        if reported:
            store_run_change(connection, row["execution_id"], now)
        return CheckReported(reported=reported, name=row["name"])

    answer = await context.database.write(run)
    context.checks_changed.set()
    return answer


def _owned(connection: Connection, caller: Caller, check_run_id: str, token: str) -> RowMapping:
    rows = checks_named(connection, caller.organization_id, check_run_id)
    if not rows:
        raise ApiError(ErrorCode.NOT_FOUND, "No check has this id.", f"id: {check_run_id}")
    for row in rows:
        execution = find_execution(connection, row["execution_id"])
        own = execution is not None and execution["workspace_id"] == caller.workspace_id
        if own and compare_digest(row["token_hash"], hash_of(token)):
            return row
    raise ApiError(
        ErrorCode.FORBIDDEN, "This check belongs to another run, or the token is not its own."
    )


Row = RowMapping

PAUSES = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""Seconds before the second and each later attempt; after the last it is given up."""

HOLD = 60.0
"""Seconds for which one service owns the report of a check: longer than a call may take."""
LET_GO: dict[str, None] = {"held_by": None, "held_until": None}


def begin(connection: Connection, check_id: str, home_id: str, now: datetime) -> Row | None:
    """Return the newest state of a check that this home is to report, if any.

    The request to the host is noted before it is made: the answer may be lost.
    """
    row = find_check(connection, check_id)
    if row is None or row["next_at"] is None:
        return None
    if row["host"] == HOST_B and row["superseded"] and shares_its_place(connection, row):
        # There all checks of a commit and a name share one record, which now belongs to the later
        # one.
        change_check(connection, check_id, unsent=False, next_at=None)
        drop_settled(connection)
        return None
    if is_held(connection, row, home_id):
        again = moment_text(now + timedelta(seconds=PAUSES[0]))
        change_check(connection, check_id, next_at=again)
        return None
    until = server_moment(connection, HOLD)
    change_check(connection, check_id, host_asked=True, held_by=home_id, held_until=until)
    return row


def note_reported(connection: Connection, reported: Row, host_ref: str | None) -> None:
    """Note that the host has the state of a row; a change made in the meantime is reported next."""
    row = find_check(connection, reported["id"])
    if row is None:
        return
    change_check(connection, reported["id"], host_ref=host_ref or row["host_ref"], **LET_GO)
    if row["revision"] == reported["revision"]:
        change_check(connection, reported["id"], unsent=False, attempts=0, next_at=None)
        drop_settled(connection)


def note_failure(connection: Connection, reported: Row, now: datetime) -> bool:
    """Note a failed attempt; True when it was the last."""
    row = find_check(connection, reported["id"])
    change_check(connection, reported["id"], **LET_GO)
    if row is None or row["revision"] != reported["revision"]:
        return False
    attempts: int = row["attempts"] + 1
    over = attempts > len(PAUSES)
    again = None if over else moment_text(now + timedelta(seconds=PAUSES[attempts - 1]))
    change_check(connection, reported["id"], attempts=attempts, next_at=again)
    drop_settled(connection)
    return over
