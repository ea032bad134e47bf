"""Run automations at their times.

Turns due schedules into runs; each fire starts one, in whichever service sees it first.

The next moment and the run are stored in one transaction. A moment that was missed while no
service ran is made up for when it is younger than an hour; of several, the newest. A moment without
a run is stored as skipped, with the reason.

Ends runs that take too long: longer than `max_minutes`, or with an unanswered question.

The replica of a run whose question was not answered within its stop time stays as it is, with the
question open: a chat that has a turn is not idle. A late answer still lets the agent continue, and
its verdict counts. The agent of a run that is over its limit is stopped.
"""

import json
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

from cronsim import CronSimError
from sqlalchemy import Connection, RowMapping

from quarterdeck.schedules import count_fires, last_fire, may_name_zone, next_fire
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.automations.rows import (
    add_skip,
    due_automations,
    move_schedule,
    owner_of,
    remove_skips,
    retentions,
)
from quarterdeck.service.automations.run_rows import (
    asking,
    fire_waits,
    has_open,
    has_run_for_fire,
    remove_ended,
    unapproved_since,
    unfinished,
)
from quarterdeck.service.automations.runs import (
    begin_run,
    finish,
    stop_run,
    store_automation_change,
    switch_off,
)
from quarterdeck.service.checks.rows import drop_settled
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.records import stored_json, stored_moment
from quarterdeck.service.errors import ApiError, DamagedRecordError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.identity.authentication import hash_of
from quarterdeck.service.quotas import WaitingRuns
from quarterdeck.service.vault import Vault
from quarterdeck.wire.automation_runs import ExecutionReason, SkipReason
from quarterdeck.wire.automations import MINUTES_MOST
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES, AUTO_STOP_MOST
from quarterdeck.wire.triggers import (
    CronTrigger,
    CustomTrigger,
    HostATrigger,
    HostBTrigger,
    StoredOnlyTrigger,
)

log = logging.getLogger(__name__)

MADE_UP_FOR = timedelta(hours=1)
"""A missed moment that is older is skipped."""
COUNTED = 100
"""How many missed moments of one outage are counted at most."""
BATCH = 50
MOMENT = timedelta(seconds=1)
"""Less than the distance of two moments of a schedule."""


def fire_due(connection: Connection, now: datetime) -> int:
    """Start the runs of some due schedules; return how many schedules were advanced."""
    rows = due_automations(connection, moment_text(now), BATCH)
    waiting_runs = WaitingRuns(connection)
    return sum(_fire_or_switch_off(connection, waiting_runs, row, now) for row in rows)


def _fire_or_switch_off(
    connection: Connection, waiting_runs: WaitingRuns, row: RowMapping, now: datetime
) -> bool:
    """Fire a schedule; switch off one that is damaged, which would be due forever."""
    try:
        with connection.begin_nested():
            return _fire(connection, waiting_runs, row, now)
    except DamagedRecordError as e:
        log.error("Automation %s is switched off: %s", row["id"], e.for_operator())
        switch_off(connection, row["id"], str(e), moment_text(now))
        return True


def _fire(
    connection: Connection, waiting_runs: WaitingRuns, row: RowMapping, now: datetime
) -> bool:
    come = row["cron_next_fire_at"]
    following = _following(row, now)
    moved = move_schedule(connection, row["id"], come, following and moment_text(following))
    if not moved:
        return False
    moment = _newest_missed(row, now)
    _note_missed(connection, row, moment or now)
    if moment is not None:
        reason = _skip_reason(connection, waiting_runs, row)
        if reason is None:
            _begin(connection, waiting_runs, row, moment, now)
        else:
            at = moment_text(moment)
            add_skip(connection, row["id"], reason, at, at, 1)
    store_automation_change(connection, row["id"], moment_text(now))
    return True


def _following(row: RowMapping, now: datetime) -> datetime | None:
    """Return the moment after the one that is due."""
    expression, zone = row["cron_expression"], row["cron_timezone"]
    try:
        if expression is None or not may_name_zone(zone or ""):
            raise ValueError("not a schedule")
        return next_fire(expression, zone, now)
    # A zone may have been in an earlier version of the time zone database.
    except (CronSimError, ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise DamagedRecordError(
            "The stored schedule is damaged, or this machine does not know its time zone. Give the "
            "automation another one.",
            f"{expression} {zone}: {e}",
        ) from e


def _newest_missed(row: RowMapping, now: datetime) -> datetime | None:
    """Return the moment that the fire is for: nearly always the one that is due now."""
    come = stored_moment(row["cron_next_fire_at"])
    since = max(come, now - MADE_UP_FOR) - MOMENT
    return last_fire(row["cron_expression"], row["cron_timezone"], since, now)


def _note_missed(connection: Connection, row: RowMapping, until: datetime) -> None:
    """Store the moments before the one that is made up for as skipped."""
    expression, zone = row["cron_expression"], row["cron_timezone"]
    come = stored_moment(row["cron_next_fire_at"])
    last = _last_between(expression, zone, come, until - MOMENT)
    if last is None:
        return
    count = count_fires(expression, zone, come - MOMENT, last, COUNTED)
    first, newest = moment_text(come), moment_text(last)
    add_skip(connection, row["id"], SkipReason.MISSED, first, newest, count)


def _last_between(expression: str, zone: str, since: datetime, until: datetime) -> datetime | None:
    """Return the last moment of a period that may be long, without going through all of it."""
    length = MADE_UP_FOR
    while until >= since:
        start = max(since, until - length)
        fire = last_fire(expression, zone, start - MOMENT, until)
        if fire is not None or start == since:
            return fire
        length *= 2
    return None


def _skip_reason(
    connection: Connection, waiting_runs: WaitingRuns, row: RowMapping
) -> SkipReason | None:
    """Return why a due moment starts no run."""
    skips = bool(stored_json(row["config_json"], dict).get("skip_while_running", False))
    if skips and has_open(connection, row["id"]):
        return SkipReason.RUNNING
    if row["concurrency"] is not None and fire_waits(connection, row["id"]):
        return SkipReason.CONCURRENCY
    if not waiting_runs.has_room(owner_of(row), awaiting=False):
        return SkipReason.QUOTA
    return None


def _begin(
    connection: Connection,
    waiting_runs: WaitingRuns,
    row: RowMapping,
    moment: datetime,
    now: datetime,
) -> None:
    fire_key = f"cron {row['id']} {moment_text(moment)}"
    if has_run_for_fire(connection, fire_key):
        return
    occasion = TriggerEvent("cron", None, moment_text(moment))
    begin_run(connection, row, occasion, moment_text(now), fire_key=fire_key)
    waiting_runs.add(owner_of(row), 1, awaiting=False)


FIELDS = 5
ZONES = "a name of the IANA database, such as Europe/Paris"


def check_schedule(expression: str, zone: str, field: str) -> None:
    """Check that a schedule and its time zone are valid and will ever be due.

    Raises:
        ApiError: INVALID_REQUEST, with what is wrong.
    """
    if len(expression.split()) != FIELDS:
        raise _wrong(f"{field}.schedule", "five fields: minute hour day month weekday")
    if not may_name_zone(zone):
        raise _wrong(f"{field}.timezone", ZONES)
    try:
        coming = next_fire(expression, zone, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as e:
        raise _wrong(f"{field}.schedule", str(e)) from e
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise _wrong(f"{field}.timezone", ZONES) from e
    if coming is None:
        raise _wrong(f"{field}.schedule", "no date matches it")


def _wrong(field: str, problem: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, "The schedule cannot be used.", f"{field}: {problem}"
    )


_LONGEST = max(MINUTES_MOST, AUTO_STOP_MOST)


@dataclass(frozen=True)
class Overdue:
    """A run to be ended, and after how many minutes."""

    run: RowMapping
    reason: ExecutionReason
    minutes: int


def overdue(connection: Connection, now: datetime, home_id: str) -> list[Overdue]:
    """Return the runs to be ended now by the service of a home."""
    overdue_runs: list[Overdue] = []
    for run in unfinished(connection, home_id):
        minutes = _minutes(run, "max_minutes")
        if minutes and _is_past(run["started_at"], minutes, now):
            overdue_runs.append(Overdue(run, ExecutionReason.TIMEOUT, minutes))
    for run in asking(connection, home_id):
        minutes = _minutes(run, "workspace_auto_stop_minutes") or AUTO_STOP_MINUTES
        if _is_past(run["last_activity_at"], minutes, now):
            overdue_runs.append(Overdue(run, ExecutionReason.UNANSWERED, minutes))
    return overdue_runs


def _minutes(run: RowMapping, name: str) -> int | None:
    """Return a limit of a run; none of a damaged one, which the log names when it ends."""
    try:
        minutes = stored_json(run["config_json"], dict).get(name)
    except DamagedRecordError:
        return None
    return minutes if isinstance(minutes, int) and 0 < minutes <= _LONGEST else None


def end_overdue(connection: Connection, now: datetime, home_id: str) -> None:
    """End them, as far as they have not ended since."""
    at = moment_text(now)
    for run in overdue(connection, now, home_id):
        minutes = "one minute" if run.minutes == 1 else f"{run.minutes} minutes"
        if run.reason == ExecutionReason.TIMEOUT:
            why = f"The run took longer than {minutes} and was stopped."
            stop_run(connection, run.run, why, run.reason, at)
        else:
            why = f"Its agent's question was not answered for {minutes}."
            finish(connection, run.run["id"], why, at, run.reason)


def _is_past(since: str | None, minutes: int, now: datetime) -> bool:
    return since is not None and since <= moment_text(now - timedelta(minutes=minutes))


REMOVED_AT_ONCE = 500
"""Runs that are removed in one write."""
EXPIRED = "Nobody approved it within {days} days."


async def apply_retention(database: Database, now: datetime) -> bool:
    """End runs that nobody approved in time, and remove some that ended too long ago.

    Return whether there is more to remove: other work of the automations must not wait for long.

    Raises:
        StorageError: the database cannot be used; what was removed so far stays removed.
    """
    left = False
    for automation_id, days in await database.read(retentions):
        left |= await database.write(
            partial(_apply, automation_id=automation_id, days=days, now=now)
        )
    return left


def _apply(connection: Connection, automation_id: str, days: int, now: datetime) -> bool:
    before, why = moment_text(now - timedelta(days=days)), EXPIRED.format(days=days)
    for execution_id in unapproved_since(connection, automation_id, before):
        finish(connection, execution_id, why, moment_text(now), ExecutionReason.EXPIRED)
    remove_skips(connection, automation_id, before)
    removed = remove_ended(connection, automation_id, before, REMOVED_AT_ONCE)
    if removed:
        drop_settled(connection)  # checks stay without their runs until the hosts know the end
    return removed == REMOVED_AT_ONCE


Trigger = CronTrigger | HostATrigger | HostBTrigger | CustomTrigger | StoredOnlyTrigger

MOST = 20
TOKEN_BYTES = 32


def check_triggers(triggers: Sequence[Trigger]) -> None:
    """Check for at most one schedule, and one trigger of each event.

    Raises:
        ApiError: INVALID_REQUEST, with the place of the wrong one.
    """
    if len(triggers) > MOST:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "There are too many triggers.", f"triggers: at most {MOST}"
        )
    seen: set[str] = set()
    for place, trigger in enumerate(triggers):
        name = _name(trigger)
        if name in seen:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "An automation has at most one trigger of each kind.",
                f"triggers.{place}: a second {name}",
            )
        seen.add(name)
        if isinstance(trigger, CronTrigger):
            config = trigger.config
            check_schedule(config.schedule, config.timezone, f"triggers.{place}.config")


def trigger_columns(
    vault: Vault,
    automation_id: str,
    triggers: Sequence[Trigger],
    enabled: bool,
    now: datetime,
    token_sealed: str | None = None,
) -> dict[str, Any]:
    """Return the columns for the triggers; an existing token is kept."""
    cron = next((trigger.config for trigger in triggers if isinstance(trigger, CronTrigger)), None)
    types = dict.fromkeys(str(trigger.type) for trigger in triggers)
    return {
        "triggers_json": json.dumps([trigger.model_dump(mode="json") for trigger in triggers]),
        "trigger_types": f" {' '.join(types)} ",
        "cron_expression": cron and cron.schedule,
        "cron_timezone": cron and cron.timezone,
        "cron_next_fire_at": coming(cron and cron.schedule, cron and cron.timezone, enabled, now),
        **_token(vault, automation_id, triggers, token_sealed),
    }


def coming(expression: str | None, zone: str | None, enabled: bool, now: datetime) -> str | None:
    """Return the next moment of a schedule; None without one, and while it is switched off."""
    if expression is None or zone is None or not enabled:
        return None
    following = next_fire(expression, zone, now)
    return following and moment_text(following)


def new_token(vault: Vault, automation_id: str) -> dict[str, str]:
    """Return the columns of a new token of an automation's webhook."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return {
        "webhook_token_sealed": vault.seal(automation_id, token),
        "webhook_token_hash": hash_of(token),
    }


def secret_place(automation_id: str) -> str:
    """Return the id that a webhook secret is sealed to, which differs from the token's."""
    return f"{automation_id} webhook_secret"


def _token(
    vault: Vault, automation_id: str, triggers: Sequence[Trigger], sealed: str | None
) -> dict[str, Any]:
    if not any(isinstance(trigger, CustomTrigger) for trigger in triggers):
        return {"webhook_token_sealed": None, "webhook_token_hash": None}
    if sealed is not None:
        return {}
    return new_token(vault, automation_id)


def _name(trigger: Trigger) -> str:
    match trigger:
        case HostATrigger() | HostBTrigger():
            return f"{trigger.type} {trigger.config.event}"
        case _:
            return str(trigger.type)
