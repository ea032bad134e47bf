"""The services that share one database, each with a home of its own (INTERFACE 7)."""

from datetime import datetime
from uuid import UUID

from quarterdeck.wire.base import Record


class Service(Record):
    """One service. `own` is the one that answers, `alive` one that was seen a moment ago."""

    home_id: UUID
    own: bool
    alive: bool
    url: str | None = None
    seen_at: datetime | None = None


class ServiceList(Record):
    """Answer of `GET /v1/services`."""

    services: list[Service]
