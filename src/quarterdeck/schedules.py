"""Moments of a cron expression in a zone. Pure: the service fires by them, front ends show them.

A schedule that names hours follows the wall clock as cron does: a moment that the clock jumps over
fires right after the jump, one that comes twice fires once. One that does not (`*/10 * * * *`)
follows the time that passes.
"""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim
from cronsim.cronsim import SYMBOLIC_DAYS, SYMBOLIC_MONTHS

_NO_ZONES = frozenset(("Factory", "localtime", "posixrules"))
_COPIES = ("posix/", "right/")
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")

_STEPPED_RANGE = re.compile(r"(?P<start>[A-Z0-9]+)-(?P<end>[A-Z0-9]+)/0*[1-9][0-9]*")
_NAMES = {
    **{name: number for number, name in enumerate(SYMBOLIC_DAYS)},
    **{name: number for number, name in enumerate(SYMBOLIC_MONTHS, 1)},
}


def may_name_zone(name: str) -> bool:
    """Return whether a name can be a zone's.

    Next to the zones are files that hold a machine's own time or none, and copies of all zones, of
    which `right/` counts leap seconds. `zoneinfo` imports a package by a name, so one with a thousand
    dots raises RecursionError.
    """
    return (
        _ZONE.fullmatch(name) is not None and name not in _NO_ZONES and not name.startswith(_COPIES)
    )


def next_fire(expression: str, zone: str, after: datetime) -> datetime | None:
    """Return the first moment later than `after`, in UTC; None when none comes within fifty years.

    Raises:
        CronSimError: the expression is none.
        ZoneInfoNotFoundError, ValueError, OSError: there is no such zone.
    """
    local = after.astimezone(ZoneInfo(zone))
    for moment in CronSim(_without_single_ranges(expression), local):
        if moment.astimezone(UTC) > after:  # the wall clock may say the same hour twice
            return moment.astimezone(UTC)
    return None


def last_fire(expression: str, zone: str, since: datetime, until: datetime) -> datetime | None:
    """Return the newest moment later than `since` and not later than `until`."""
    newest, moment = None, next_fire(expression, zone, since)
    while moment is not None and moment <= until:
        newest, moment = moment, next_fire(expression, zone, moment)
    return newest


def count_fires(expression: str, zone: str, since: datetime, until: datetime, most: int) -> int:
    """Return how many moments are later than `since` and not later than `until`, `most` at most."""
    count, moment = 0, next_fire(expression, zone, since)
    while moment is not None and moment <= until and count < most:
        count, moment = count + 1, next_fire(expression, zone, moment)
    return count


def coming_fires(expression: str, zone: str, after: datetime, count: int) -> list[datetime]:
    """Return the next moments, at most so many. Raises as `next_fire`."""
    found: list[datetime] = []
    while len(found) < count:
        moment = next_fire(expression, zone, found[-1] if found else after)
        if moment is None:
            break
        found.append(moment)
    return found


def _without_single_ranges(expression: str) -> str:
    """Write a stepped range of one value, such as `9-9/2`, as that value.

    cronsim takes a stepped range that holds one value for the start of an open one: it reads `9-9/2`
    as `9/2`, that is 9, 11, 13 and so on, where every cron has 9 alone. Present in 2.8 and before
    (`Field.parse`, `if len(items) == 1`); without effect once that is corrected upstream.
    """
    fields = expression.upper().split()
    return " ".join(",".join(map(_single, field.split(","))) for field in fields)


def _single(term: str) -> str:
    found = _STEPPED_RANGE.fullmatch(term)
    if found is None or _number(found["start"]) != _number(found["end"]):
        return term
    return found["start"]


def _number(value: str) -> int | str:
    return int(value) if value.isdigit() else _NAMES.get(value, value)
