"""The coming moments of a schedule as it is typed, or what is wrong with it in plain words."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError, available_timezones

from cronsim import CronSimError

from quarterdeck.schedules import coming_fires, may_name_zone
from quarterdeck.wire.automations import Automation

SHOWN = 5
FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
BOUNDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of the month": "1 to 31, and one that its months have",
    "month": "1 to 12, or jan to dec",
    "day of the week": "0 to 7, or mon to sun",
}
_NAMES = {
    "Bad minute": "minute",
    "Bad hour": "hour",
    "Bad day-of-month": "day of the month",
    "Bad month": "month",
    "Bad day-of-week": "day of the week",
}


@dataclass(frozen=True)
class Coming:
    """Moments in UTC; or, without any, what is wrong and with which field: schedule or timezone."""

    moments: tuple[datetime, ...] = ()
    problem: str | None = None
    field: str = "schedule"


def coming(expression: str, zone: str, now: datetime, count: int = SHOWN) -> Coming:
    """What a schedule would do from now on."""
    given = len(expression.split())
    if given != len(FIELDS):
        return Coming(problem=f"Five fields are needed, {given} given: {', '.join(FIELDS)}.")
    if not zone:
        return Coming(problem="A zone is needed, such as UTC or Europe/Paris.", field="timezone")
    if not may_name_zone(zone):
        return _no_zone(zone)
    try:
        moments = coming_fires(expression, zone, now, count)
    except CronSimError as error:
        return Coming(problem=_plain(str(error), expression))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _no_zone(zone)
    if not moments:
        return Coming(problem="No date ever matches it.")
    return Coming(tuple(moments))


def coming_of(automation: Automation, now: datetime, count: int = SHOWN) -> Coming:
    """The coming moments of an automation's schedule, also of one that is switched off.

    One whose schedule is not understood here has the moment that the service tells, if any.
    """
    if automation.cron_expression is None:
        return Coming()
    found = coming(automation.cron_expression, automation.cron_timezone or "UTC", now, count)
    told = automation.cron_next_fire_at
    return Coming((told,)) if found.problem and told else found


def zone_names() -> list[str]:
    """All zones that this machine knows, for completion."""
    return sorted(filter(may_name_zone, available_timezones()))


def _no_zone(name: str) -> Coming:
    what = f"There is no zone {name!r}: a name such as UTC or Europe/Paris."
    return Coming(problem=what, field="timezone")


def _plain(error: str, expression: str) -> str:
    name = _NAMES.get(error)
    if name is None:
        return f"It cannot be read as a schedule: {error}."
    part = expression.split()[FIELDS.index(name)]
    return f"The {name} {part!r} is none: {BOUNDS[name]}, * for any, */2 for every second one."
