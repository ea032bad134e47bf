"""The coming moments of an automation's schedule."""

from datetime import datetime
from typing import TYPE_CHECKING

from quarterdeck.cli.automation.words import FORMAT, here

if TYPE_CHECKING:
    from quarterdeck.wire.automations import Automation

SHOWN = 5


def coming(automation: "Automation", now: datetime, count: int = SHOWN) -> list[datetime]:
    """The next moments in UTC, also of one that is switched off.

    One whose schedule is not understood here has the moment that the service tells, if any.
    """
    from zoneinfo import ZoneInfoNotFoundError

    from cronsim import CronSimError

    from quarterdeck.schedules import coming_fires

    expression, zone = automation.cron_expression, automation.cron_timezone
    if expression is None:
        return []
    try:
        return coming_fires(expression, zone or "UTC", now, count)
    except (CronSimError, ZoneInfoNotFoundError, ValueError, OSError):
        told = automation.cron_next_fire_at
        return [] if told is None else [told]


def both_clocks(moment: datetime, zone: str | None) -> str:
    """A moment in the zone of the schedule, and by the clock of this machine."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = zone or "UTC"
    try:
        there = moment.astimezone(ZoneInfo(name)).strftime(FORMAT)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return here(moment)
    return f"{there} {name}, here {here(moment)}"
