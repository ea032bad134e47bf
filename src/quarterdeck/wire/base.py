"""What every model of the contract shares.

The control plane speaks snake_case, the in-workspace engine camelCase; each model keeps the case
that the contract gives its resource, whatever the version header says (INTERFACE, reading rules).
"""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    Strict,
)
from pydantic.alias_generators import to_camel

# Records defer their build to their first use: a process needs few of the many, and building them all
# is most of what importing this package costs. Bodies do not: the HTTP framework builds them itself,
# and warns of its own metadata when it comes too late for that.


def utc_now() -> datetime:
    """The present moment, aware, in UTC."""
    return datetime.now(UTC)


def _assume_utc(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[
    AwareDatetime,
    BeforeValidator(_assume_utc),
    PlainSerializer(_iso, return_type=str, when_used="json"),
]
"""An ISO 8601 date-time, always in UTC with milliseconds on the wire."""

Id = UUID
"""Ids of the contract are UUIDs unless it says otherwise."""

Whole = Annotated[int, Strict()]
"""An integer of a request body: `80.0`, `"80"` and `true` are refused, not turned into one."""

Switch = Annotated[bool, Strict()]
"""A boolean of a request body: `"true"` and `1` are refused, not turned into one."""

# A string with a bound, be it 0, is looked at when it is read: half a surrogate pair (`"\\ud800"`),
# which nothing can store, is refused. One without would be taken as it is.
_ANY_LENGTH = 0


class Record(BaseModel):
    """A resource or answer in snake_case. Unknown fields are kept, so a newer server breaks nothing."""

    model_config = ConfigDict(
        extra="allow", validate_by_name=True, validate_by_alias=True, defer_build=True
    )


class CamelRecord(BaseModel):
    """A resource or answer in camelCase (what comes through from the engine)."""

    model_config = ConfigDict(
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )


class Body(BaseModel):
    """A request body in snake_case. Unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        str_min_length=_ANY_LENGTH,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Patch(Body):
    """Body of a PATCH: what is not given stays as it is, what is given as null is cleared.

    `model_fields_set` tells the one from the other; the client sends only what was set.
    """


class CamelBody(BaseModel):
    """A request body in camelCase. Unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        str_min_length=_ANY_LENGTH,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Success(Record):
    """The plain answer of operations that return nothing else."""

    success: bool = True
