"""What every model of the contract shares.

The control plane speaks snake_case, the in-workspace engine camelCase; each model keeps the case
that the contract gives its resource, whatever the version header says (INTERFACE, reading rules).
"""

import re
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Self, cast
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    Strict,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

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

_CANONICAL = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DIGITS = re.compile(r"-?[0-9]+")


def _canonical(value: object) -> object:
    if isinstance(value, str) and not _CANONICAL.fullmatch(value):
        raise ValueError("it must be a UUID with its hyphens, and nothing else")
    return value


def _digits(value: object) -> object:
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise ValueError("it must be an integer in digits")
    return value


GivenId = Annotated[UUID, BeforeValidator(_canonical)]
"""An id of a request: of the several ways to write a UUID, the one with hyphens alone."""

GivenWhole = Annotated[int, BeforeValidator(_digits)]
"""An integer of a query or a path, which is text: `1.0`, `1_0` and ` 1` are refused."""

Whole = Annotated[int, Strict()]
"""An integer of a request body: `80.0`, `"80"` and `true` are refused, not turned into one."""

Switch = Annotated[bool, Strict()]
"""A boolean of a request body: `"true"` and `1` are refused, not turned into one."""

# A string with a bound, be it 0, is looked at when it is read: half a surrogate pair (`"\\ud800"`),
# which nothing can store, is refused. One without would be taken as it is.
_ANY_LENGTH = 0

DEEPEST = 100
"""Levels of JSON within JSON that a body may have: more would exhaust who walks through it."""

NUL_ERROR = "nul_character"
"""Type of the error for a NUL character; its context names the field."""


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


class _Sent(BaseModel):
    """What every request body shares: no text in it holds a NUL character.

    PostgreSQL stores none, and no argument, path or variable can hold one. A body whose text goes
    nowhere but to a terminal says `takes_nul`.
    """

    takes_nul: ClassVar[bool] = False

    @model_validator(mode="after")
    def _refuse_nul(self) -> Self:
        if not self.takes_nul:
            for name, value in (self.__dict__ | (self.__pydantic_extra__ or {})).items():
                if _holds_nul(name) or _holds_nul(value):
                    raise PydanticCustomError(
                        NUL_ERROR,
                        "A NUL character is not allowed",
                        {"field": name.replace("\0", "")},
                    )
        return self


def _holds_nul(value: object, levels: int = DEEPEST) -> bool:
    match value:
        case str():
            return "\0" in value
        case list() | dict() if not levels:
            raise PydanticCustomError("too_deep", "At most 100 levels may lie in one another")
        case list():
            return any(_holds_nul(one, levels - 1) for one in cast("list[object]", value))
        case dict():
            entries = cast("dict[object, object]", value)
            both = (*entries, *entries.values())
            return any(_holds_nul(one, levels - 1) for one in both)
        case _:
            return False  # a model of its own has looked itself


class Body(_Sent):
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


class CamelBody(_Sent):
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
