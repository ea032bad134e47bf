"""Formats of values in requests and answers: times, cursors, ETags, text.

Text from outside that goes into columns: PostgreSQL stores no NUL character.

Request bodies with one are refused. Output of agents and programs is kept unchanged in the log,
whose JSON escapes the character; in columns it becomes the replacement character. So does half of a
surrogate pair, which JSON can contain and UTF-8 cannot.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, cast

from fastapi import Header
from pydantic import BaseModel, Field, ValidationError

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.errors import ErrorCode


def moment_text(moment: datetime) -> str:
    """Return the text of an aware moment, as it is stored and sent."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now_text() -> str:
    """Return the text of the current time."""
    return moment_text(utc_now())


NUL, REPLACEMENT = "\0", "\ufffd"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return the text without characters that a column cannot store."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def storable_json(value: Any) -> Any:
    """Return a JSON value with all of its texts made storable."""
    match value:
        case str():
            return storable(value)
        case list():
            return [storable_json(item) for item in cast("list[Any]", value)]
        case dict():
            entries = cast("dict[str, Any]", value)
            return {storable(key): storable_json(entry) for key, entry in entries.items()}
        case _:
            return value


IfMatch = Annotated[
    str | None,
    Header(description="Change it only while it has this entity tag; `*` matches any."),
]
"""Annotation of a route's parameter that takes the condition of a change."""

_TAG = re.compile(r'"[^"]*"')


def etag_of(record: BaseModel, fields: Iterable[str]) -> str:
    """Return the tag of a record: it changes with the fields that a client can change."""
    text = record.model_dump_json(include=set(fields) & record.__class__.model_fields.keys())
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def check_match(if_match: str | None, tag: Callable[[], str]) -> None:
    """Refuse a change whose condition does not match the current tag.

    Raises:
        ApiError: PRECONDITION_FAILED.
    """
    if if_match is None or if_match.strip() == "*":
        return
    # Weak tags (`W/"..."`) never match: the comparison is strong (RFC 9110, 13.1.1).
    tags = [] if "W/" in if_match else _TAG.findall(if_match)
    if tag() not in tags:
        raise ApiError(
            ErrorCode.PRECONDITION_FAILED,
            "It has changed meanwhile. Read it again, then repeat the change.",
            "If-Match",
        )


Cursor = TypeVar("Cursor", bound=BaseModel)


def encode_opaque(cursor: BaseModel) -> str:
    """Return the cursor as text for a client."""
    return base64.urlsafe_b64encode(cursor.model_dump_json().encode()).decode().rstrip("=")


def decode_opaque(kind: type[Cursor], text: str) -> Cursor:
    """Return the cursor of a text.

    Raises:
        ValueError: it is not a cursor of this kind.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        return kind.model_validate_json(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValidationError, ValueError) as e:
        raise ValueError("it is not a cursor of this service") from e


class HistoryCursor(BaseModel):
    """Exclusive upper bounds of the events, and of the turns, of the next page."""

    thread: str
    before_event: int = Field(ge=0)
    before_turn: int | None = Field(default=None, ge=0)


def decode(text: str, thread: str) -> HistoryCursor:
    """Return the cursor of a text.

    Raises:
        ApiError: INVALID_REQUEST when it is not a cursor, or one of another thread.
    """
    try:
        cursor = decode_opaque(HistoryCursor, text)
    except ValueError as e:
        raise _refused(str(e)) from e
    if cursor.thread != thread:
        raise _refused("it belongs to another replica or chat")
    return cursor


def _refused(why: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, "The history has no such page.", f"beforeCursor: {why}"
    )
