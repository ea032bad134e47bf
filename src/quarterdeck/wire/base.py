r"""Bases of the contract's models, and shared field types.

The control plane uses snake_case, the in-workspace engine camelCase; each model keeps the case that
the contract gives its resource, for every version header (docs/interface.md 0.2).

Text that is stored or passed to programs has no NUL and limits in bytes: PostgreSQL stores no NUL, and
paths, variables and arguments cannot contain one. The validators follow a field's bounds, so that
these are part of its schema.

A file name is any bytes but `/` and NUL, while JSON has only text: bytes that are not UTF-8 are shown
as `\xNN`.
"""

import re
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Annotated, ClassVar, Self, cast
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    Strict,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, ValidationError

# Models are built on first use: a process needs few of them, and building all takes most of the time
# to import this package. The service builds its bodies earlier (`build_bodies_at_once`).


def utc_now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def _assume_utc(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _within_calendar(value: datetime) -> datetime:
    ends = (MINYEAR, MAXYEAR)
    # In UTC, a time of these years may be outside the calendar, and one of the years beside them in
    # these: it would be stored, and refused when it is read again.
    if value.year in ends or value.astimezone(UTC).year in ends:
        raise ValueError("it is not in the years 2 to 9998")
    return value


def iso_text(value: datetime) -> str:
    """Return a time as ISO 8601 text in UTC with milliseconds."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[
    AwareDatetime,
    BeforeValidator(_assume_utc),
    AfterValidator(_within_calendar),
    PlainSerializer(iso_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An ISO 8601 date-time, always in UTC with milliseconds on the wire."""

Id = UUID
"""Ids of the contract are UUIDs unless it says otherwise."""

CANONICAL_ID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
"""The only accepted form of an id in a request."""

_DIGITS = re.compile(r"-?[0-9]+")


def _canonical(value: object) -> object:
    if isinstance(value, str) and not CANONICAL_ID.fullmatch(value):
        raise ValueError("it must be a UUID with its hyphens, and nothing else")
    return value


def _digits(value: object) -> object:
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise ValueError("it must be an integer in digits")
    return value


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


GivenId = Annotated[UUID, BeforeValidator(_canonical)]
"""An id of a request: a UUID, only in the form with hyphens."""

# Bounds come before these two: put after a validator, pydantic checks them but leaves them out of the
# JSON schema (it writes `ge` there instead of `minimum`).
DIGITS = BeforeValidator(_digits)
"""For an integer of a query or a path, which is text: `1.0`, `1_0` and ` 1` are refused."""

INTEGRAL = BeforeValidator(_whole)
"""For a strict integer of a request body, as JSON Schema has it: `80.0` is one, `80.5`, `"80"` and
`true` are not."""

Switch = Annotated[bool, Strict()]
"""A boolean of a request body: `"true"` and `1` are refused, not turned into one."""

# A string with a bound, even 0, is checked when it is read: a lone surrogate (`"\\ud800"`), which cannot
# be stored, is refused. Without a bound it would be accepted.
_ANY_LENGTH = 0

DEEPEST = 100
"""Maximum nesting of JSON in a body: more would exhaust recursive code."""

NUL_ERROR = "nul_character"
"""Type of the error for a NUL character; its context names the field."""


class Record(BaseModel):
    """A resource or answer in snake_case. Unknown fields are kept, so a newer server breaks nothing."""

    model_config = ConfigDict(
        extra="allow",
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )


class CamelRecord(BaseModel):
    """A resource or answer in camelCase (what comes through from the engine)."""

    model_config = ConfigDict(
        extra="allow",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )


class _Sent(BaseModel, defer_build=True):
    """Base of request bodies: no text in them contains a NUL character.

    PostgreSQL stores none, and arguments, paths and variables cannot contain one. A body whose text
    only goes to a terminal sets `takes_nul`.
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
            return any(_holds_nul(item, levels - 1) for item in cast("list[object]", value))
        case dict():
            entries = cast("dict[object, object]", value)
            both = (*entries, *entries.values())
            return any(_holds_nul(name, levels - 1) for name in both)
        case _:
            return False  # a nested model has checked itself


class Body(_Sent):
    """A request body in snake_case. Unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        str_min_length=_ANY_LENGTH,
        defer_build=True,
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
        defer_build=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


def build_bodies_at_once() -> None:
    """Let the HTTP framework build request bodies when a route is declared.

    It hides pydantic's warnings about its own metadata only then, not when a body is built later.
    """
    bodies: list[type[_Sent]] = [Body, CamelBody]
    for body in bodies:
        body.model_config["defer_build"] = False
        bodies += body.__subclasses__()


class Success(Record):
    """The plain answer of operations that return nothing else."""

    success: bool = True
    """Always true: a failure is answered with an Error object."""


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL character is not allowed")
    return text


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("it must be one line, without control characters")
    return text


def bytes_at_most(limit: int) -> AfterValidator:
    """Return a validator for UTF-8 of at most `limit` bytes."""

    def check(text: str) -> str:
        if len(text.encode()) > limit:
            raise ValueError(f"at most {limit} bytes")
        return text

    return AfterValidator(check)


def _more_than_blanks(text: str) -> str:
    if not text.strip():
        raise ValueError("it must hold more than blanks")
    return text


NO_NUL = AfterValidator(_without_nul)
ONE_LINE = AfterValidator(_one_line)
NOT_BLANK = AfterValidator(_more_than_blanks)

Text = Annotated[str, NO_NUL]
"""Any text of a request body that is stored."""

Line = Annotated[str, ONE_LINE]
"""A header or the like."""


_ESCAPE = re.compile(r"\\x([89a-f][0-9a-f])")


def shown(name: bytes) -> str:
    """Return the name as text."""
    return name.decode(errors="backslashreplace")


def meant(text: str) -> list[bytes]:
    """Return the names that a text may mean, the literal one first.

    Raises:
        UnicodeEncodeError: it contains a lone surrogate, which shown names do not.
    """
    plain = text.encode()
    escaped = b"".join(_bytes_of(part) for part in re.split(r"(\\x[89a-f][0-9a-f])", text))
    return [plain] if plain == escaped else [plain, escaped]


def _bytes_of(part: str) -> bytes:
    match = _ESCAPE.fullmatch(part)
    return bytes([int(match[1], 16)]) if match else part.encode()


def first_error(error: ValidationError, place: str | None = None) -> str:
    """Return the first error, as `field: reason`. Values may be secret, so none is repeated.

    Args:
        place: what to call the field; by default its path.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) if place is None else place
    context = first.get("ctx", {})
    match first["type"]:
        case "extra_forbidden":
            reason = "unknown"
        case "missing":
            reason = "required"
        case "string_pattern_mismatch":
            reason = f"does not match {context['pattern']}"
        case "string_too_short" if context["min_length"] == 1:
            reason = "must not be empty"
        case "string_too_short":
            reason = f"at least {context['min_length']} characters"
        case "string_too_long":
            reason = f"at most {context['max_length']} characters"
        case _:
            reason = first["msg"].removeprefix("Value error, ")
    return f"{where}: {reason.rstrip('.')}" if where else reason.rstrip(".")
