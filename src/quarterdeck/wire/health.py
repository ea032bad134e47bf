"""`GET /v1/health` (INTERFACE 7): the one operation that needs no key."""

from quarterdeck.wire.base import Record


class Health(Record):
    """The service is up; `version` is the program's."""

    status: str
    version: str
