"""Ends runs whose agent waits for an answer that nobody gives, after their stop time.

Their replicas stay as they are, with the question open: a chat that has a turn is not idle. Whoever
answers still lets the agent go on, and its verdict counts.
"""

import json
from datetime import datetime, timedelta

from sqlalchemy import Connection

from quarterdeck.service.automations.runs import finish
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.executions import asking
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES

STOP_TIME = "workspace_auto_stop_minutes"


def overdue(connection: Connection, now: datetime) -> list[tuple[str, int]]:
    """The runs that have waited for longer than their stop time, and how many minutes that is."""
    found: list[tuple[str, int]] = []
    for row in asking(connection):
        minutes = json.loads(row["config_json"]).get(STOP_TIME) or AUTO_STOP_MINUTES
        if row["last_activity_at"] <= moment_text(now - timedelta(minutes=minutes)):
            found.append((row["id"], minutes))
    return found


def end_overdue(connection: Connection, now: datetime) -> None:
    """Ends them, as far as they still wait."""
    for execution_id, minutes in overdue(connection, now):
        why = f"Its agent asked something, and nobody answered for {minutes} minutes."
        finish(connection, execution_id, why, moment_text(now))
