"""Whether a schedule that somebody sends can be used."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfoNotFoundError

from cronsim import CronSimError

from quarterdeck.schedules import may_name_zone, next_fire
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

FIELDS = 5
ZONES = "a name of the IANA database, such as Europe/Paris"


def check_schedule(expression: str, zone: str, field: str) -> None:
    """Whether the two can be understood and ever come.

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


def _wrong(field: str, what: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, "The schedule cannot be used.", f"{field}: {what}")
