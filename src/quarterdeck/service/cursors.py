"""The opaque cursor of history: where the next earlier page ends, and of which thread."""

import base64
import binascii

from pydantic import BaseModel, Field, ValidationError

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode


class HistoryCursor(BaseModel):
    """Exclusive upper bound of the events of the next page."""

    thread: str
    before_event: int = Field(ge=0)


def encode(cursor: HistoryCursor) -> str:
    """The cursor as text for a client."""
    return base64.urlsafe_b64encode(cursor.model_dump_json().encode()).decode().rstrip("=")


def decode(text: str, thread: str) -> HistoryCursor:
    """The cursor of a text.

    Raises:
        ApiError: INVALID_REQUEST when it is no cursor, or one of another thread.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        cursor = HistoryCursor.model_validate_json(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValidationError, ValueError) as e:
        raise _refused("it is not a cursor of this service") from e
    if cursor.thread != thread:
        raise _refused("it belongs to another replica or chat")
    return cursor


def _refused(why: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, "The history has no such page.", f"beforeCursor: {why}"
    )
