"""Turns schedules that have come into runs; each fire makes one, whoever sees it first.

The moment is moved on and the run is stored in one transaction. A moment that was missed while no
service ran is made up for when it is younger than an hour; of several, the newest.
"""

import json
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping

from quarterdeck.schedules import last_fire, next_fire
from quarterdeck.service.automations.prompts import Occasion
from quarterdeck.service.automations.runs import begin_run, tell_automation
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.automations import due_automations, move_schedule
from quarterdeck.service.records.executions import fire_was_taken, has_open

MADE_UP_FOR = timedelta(hours=1)
"""A missed moment that is older is left out."""
BATCH = 50


def fire_due(connection: Connection, now: datetime) -> int:
    """Makes the runs of some schedules that have come; returns how many schedules were moved on."""
    rows = due_automations(connection, moment_text(now), BATCH)
    return sum(_fire(connection, row, now) for row in rows)


def _fire(connection: Connection, row: RowMapping, now: datetime) -> bool:
    expression, zone, come = row["cron_expression"], row["cron_timezone"], row["cron_next_fire_at"]
    following = next_fire(expression, zone, now)
    moved = move_schedule(connection, row["id"], come, following and moment_text(following))
    if not moved:
        return False
    moment = _newest_missed(row, now)
    if moment is not None and not _skips(connection, row):
        _begin(connection, row, moment, now)
    tell_automation(connection, row["id"], moment_text(now))
    return True


def _newest_missed(row: RowMapping, now: datetime) -> datetime | None:
    """Which moment the fire is for: nearly always the one that has just come."""
    come = datetime.fromisoformat(row["cron_next_fire_at"])
    since = max(come, now - MADE_UP_FOR) - timedelta(seconds=1)
    return last_fire(row["cron_expression"], row["cron_timezone"], since, now)


def _skips(connection: Connection, row: RowMapping) -> bool:
    skips = json.loads(row["config_json"]).get("skip_while_running", False)
    return bool(skips) and has_open(connection, row["id"])


def _begin(connection: Connection, row: RowMapping, moment: datetime, now: datetime) -> None:
    fire_key = f"cron {row['id']} {moment_text(moment)}"
    if fire_was_taken(connection, fire_key):
        return
    occasion = Occasion("cron", None, moment_text(moment))
    begin_run(connection, row, occasion, moment_text(now), fire_key=fire_key)
