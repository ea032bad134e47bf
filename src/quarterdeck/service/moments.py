"""Moments as the database holds them: ISO text in UTC with milliseconds, which sorts by time."""

from datetime import UTC, datetime

from quarterdeck.wire.base import utc_now


def moment_text(moment: datetime) -> str:
    """The text of an aware moment, as it is stored and sent."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now_text() -> str:
    """The text of the present moment."""
    return moment_text(utc_now())
