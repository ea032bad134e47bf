"""Moments of a cron expression in a zone. Pure: the service fires by them, front ends show them.

A schedule that names hours follows the wall clock as cron does: a moment that the clock jumps over
fires right after the jump, one that comes twice fires once. One that does not (`*/10 * * * *`)
follows the time that passes.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

_NO_ZONES = frozenset(("Factory", "localtime", "posixrules"))
_COPIES = ("posix/", "right/")


def may_name_zone(name: str) -> bool:
    """Whether a name can be a zone's. Beside the zones lie files that hold a machine's own time or
    none, and copies of all zones, of which `right/` counts leap seconds."""
    return name not in _NO_ZONES and not name.startswith(_COPIES)


def next_fire(expression: str, zone: str, after: datetime) -> datetime | None:
    """The first moment later than `after`, in UTC; None when none comes within fifty years.

    Raises:
        CronSimError: the expression is none.
        ZoneInfoNotFoundError, ValueError, OSError: there is no such zone.
    """
    local = after.astimezone(ZoneInfo(zone))
    for moment in CronSim(expression, local):
        if moment.astimezone(UTC) > after:  # the wall clock may say the same hour twice
            return moment.astimezone(UTC)
    return None


def last_fire(expression: str, zone: str, since: datetime, until: datetime) -> datetime | None:
    """The newest moment later than `since` and not later than `until`."""
    newest, moment = None, next_fire(expression, zone, since)
    while moment is not None and moment <= until:
        newest, moment = moment, next_fire(expression, zone, moment)
    return newest


def coming_fires(expression: str, zone: str, after: datetime, count: int) -> list[datetime]:
    """The next moments, at most so many. Raises as `next_fire`."""
    found: list[datetime] = []
    while len(found) < count:
        moment = next_fire(expression, zone, found[-1] if found else after)
        if moment is None:
            break
        found.append(moment)
    return found
