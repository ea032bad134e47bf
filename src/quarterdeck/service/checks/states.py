"""What may become of a check. Every change of one is made by `_change`, within a write.

| from | by | to |
|---|---|---|
| - | its run is about to start | open |
| open, abandoned, reported | a report, while it is the newest of its subject | reported |
| open | a later run for the same subject | superseded |
| open | its run ends without a report | abandoned |

Writes go one after another, so whoever looks at a check in a write and changes it there has it to
itself. A report that comes twice replaces the first, also after the run has ended: an agent may
come to another view. None counts once a later run for the same pull request was begun.
"""

from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.checks.places import CheckPlace
from quarterdeck.service.hosts.settings import LOCAL
from quarterdeck.service.records.checks import (
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
from quarterdeck.service.storable import storable
from quarterdeck.wire.automations import ExecutionStatus, ReportCheck

Row = RowMapping

NEUTRAL, FAILURE, CANCELLED = "neutral", "failure", "cancelled"
SUMMARY_CHARACTERS = 60_000

LATER = "A later run for this pull request takes its place."
REMOVED = "The automation was deleted before the run had ended."
UNTOLD = "It is kept here: its host did not tell the pull request's head."
UNSAID = "No verdict was reported."
FAILED = "The run failed before it had a verdict."


def open_check(
    connection: Connection,
    execution: Row,
    automation: Row,
    place: CheckPlace,
    now: str,
) -> tuple[str, list[str]]:
    """Opens the check of a run that is about to start, or finds it as an earlier try left it.

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
    made = str(uuid4())
    at_host = place.host != LOCAL
    add_check(
        connection,
        id=made,
        organization_id=execution["organization_id"],
        execution_id=execution["id"],
        automation_id=automation["id"],
        check_run_id=made,
        host=place.host,
        host_asked=False,
        repository=place.repository,
        subject=subject,
        head_sha=place.head_sha,
        name=automation["name"],
        token_hash="",  # none opens it before its run is stored as started
        status=OPEN,
        title=place.why_here and UNTOLD,
        summary=place.why_here,
        superseded=False,
        revision=0,
        unsent=at_host,
        attempts=0,
        next_at=now if at_host else None,
        opened_at=now,
    )
    return made, [execution_id for execution_id in earlier if execution_id is not None]


def _gives_way(row: Row, place: CheckPlace) -> bool:
    """Whether a check is superseded by one that is opened: not at a host by one that is not there,
    for nothing would take its place."""
    return place.why_here is None or row["host"] == LOCAL


def _subject(execution: Row, automation: Row, place: CheckPlace) -> str:
    """What a later run may supersede: a pull request; without one every run stands for itself."""
    if place.number is None:
        return f"{automation['id']} {execution['id']}"
    return f"{automation['id']} {place.repository.lower()}#{place.number}"


def give_out(connection: Connection, check_id: str, check_run_id: str, token_hash: str) -> None:
    """The run was stored as started with this id and token in its prompt."""
    change_check(connection, check_id, check_run_id=check_run_id, token_hash=token_hash)


def report(connection: Connection, row: Row, body: ReportCheck, now: str) -> bool:
    """Keeps a verdict; False when a later run has superseded the check."""
    if row["superseded"]:
        return False
    said = {
        "status": REPORTED,
        "conclusion": body.conclusion,
        "title": body.title,
        "summary": body.summary or body.title,
    }
    if any(row[name] != value for name, value in said.items()):
        _change(connection, row, now, **said)
    return True


def run_ended(connection: Connection, execution: Row, now: str) -> None:
    """Closes the check of a run that has just ended, unless it was reported.

    What a failed run would have found nobody knows, so it does not pass.
    """
    row = check_of(connection, execution["id"])
    if row is None or row["status"] != OPEN:
        return
    if execution["status"] == ExecutionStatus.COMPLETED:
        _abandon(connection, row, NEUTRAL, UNSAID, UNSAID, now)
    else:
        error = (execution["error"] or FAILED)[:SUMMARY_CHARACTERS]
        _abandon(connection, row, FAILURE, FAILED, error, now)


def automation_goes(connection: Connection, automation_id: str, now: str) -> None:
    """Closes the checks of an automation that is just being deleted; call before its row goes."""
    for row in open_of_automation(connection, automation_id):
        _abandon(connection, row, CANCELLED, REMOVED, REMOVED, now)


def automation_gone(connection: Connection) -> None:
    """After its row went: what no host has to hear of goes too."""
    drop_settled(connection)


def _supersede(connection: Connection, row: Row, now: str) -> str | None:
    """A later run begins; returns the earlier one if its check was still open."""
    if row["status"] != OPEN:
        change_check(connection, row["id"], superseded=True)
        return None
    values = {"status": SUPERSEDED, "superseded": True, "conclusion": CANCELLED}
    _change(connection, row, now, title=LATER, summary=LATER, **values)
    return row["execution_id"]


def _let_go(connection: Connection, row: Row, now: str) -> None:
    """Its run gets another check; this one stays until its host has heard of the end."""
    _supersede(connection, row, now)
    change_check(connection, row["id"], execution_id=None)
    drop_settled(connection)


def _abandon(
    connection: Connection, row: Row, conclusion: str, title: str, summary: str, now: str
) -> None:
    values = {"status": ABANDONED, "conclusion": conclusion, "title": title}
    _change(connection, row, now, summary=storable(summary), **values)


def _change(connection: Connection, row: Row, now: str, **values: Any) -> None:
    """The one place where a check's state is changed: its host is to hear of it."""
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
