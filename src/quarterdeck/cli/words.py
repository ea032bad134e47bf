"""Small phrases."""

from datetime import datetime

from quarterdeck.wire.base import utc_now

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def ago(moment: datetime) -> str:
    """How long ago, in its largest unit: `3d`, `5h`, `12m`, `8s`."""
    seconds = max(0, int((utc_now() - moment).total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
