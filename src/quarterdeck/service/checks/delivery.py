"""What is kept of telling a host about a check: before a call, and after it."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.hosts.settings import HOST_B
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.checks import (
    change_check,
    drop_settled,
    find_check,
    is_held,
    shares_its_place,
)
from quarterdeck.service.records.services import server_moment

Row = RowMapping

PAUSES = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""Seconds before the second try and those that follow; after the last it is given up."""

HOLD = 60.0
"""Seconds for which a check is one service's to tell: longer than a call may take. A service that
is killed meanwhile takes it up when it is back, another one when this is over."""
LET_GO: dict[str, None] = {"held_by": None, "held_until": None}


def begin(connection: Connection, check_id: str, home_id: str, now: datetime) -> Row | None:
    """The newest state of a check, as this home is to tell it; None when it has nothing to tell.

    That the host is asked for a record is noted before it is: the answer may be lost.
    """
    row = find_check(connection, check_id)
    if row is None or row["next_at"] is None:
        return None
    if row["host"] == HOST_B and row["superseded"] and shares_its_place(connection, row):
        # There one record serves all checks of a commit and a name, and it is the later one's now.
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


def taken(connection: Connection, told: Row, host_ref: str | None) -> None:
    """The host was told what a row said; a change made meanwhile is told next."""
    row = find_check(connection, told["id"])
    if row is None:
        return
    change_check(connection, told["id"], host_ref=host_ref or row["host_ref"], **LET_GO)
    if row["revision"] == told["revision"]:
        change_check(connection, told["id"], unsent=False, attempts=0, next_at=None)
        drop_settled(connection)


def not_taken(connection: Connection, told: Row, now: datetime) -> bool:
    """Notes a failed try; True when it was the last."""
    row = find_check(connection, told["id"])
    change_check(connection, told["id"], **LET_GO)
    if row is None or row["revision"] != told["revision"]:
        return False
    attempts: int = row["attempts"] + 1
    over = attempts > len(PAUSES)
    again = None if over else moment_text(now + timedelta(seconds=PAUSES[attempts - 1]))
    change_check(connection, told["id"], attempts=attempts, next_at=again)
    drop_settled(connection)
    return over
