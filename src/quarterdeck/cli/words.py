"""Small phrases."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from quarterdeck.wire.base import utc_now

if TYPE_CHECKING:
    from quarterdeck.wire.services import Service

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def ago(moment: datetime) -> str:
    """How long ago, in its largest unit: `3d`, `5h`, `12m`, `8s`."""
    seconds = max(0, int((utc_now() - moment).total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def services_text(known: "Sequence[Service]") -> str:
    """How many services share the database: `1`, `2`, `3, 1 of them away`."""
    away = sum(not one.alive for one in known)
    return f"{len(known)}, {away} of them away" if away else str(len(known))
