"""The opaque cursor of history: where the next earlier page ends, and of which thread."""

from pydantic import BaseModel, Field

from quarterdeck.service import opaque
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode


class HistoryCursor(BaseModel):
    """Exclusive upper bounds of the events, and of the turns, of the next page."""

    thread: str
    before_event: int = Field(ge=0)
    before_turn: int | None = Field(default=None, ge=0)


def decode(text: str, thread: str) -> HistoryCursor:
    """The cursor of a text.

    Raises:
        ApiError: INVALID_REQUEST when it is no cursor, or one of another thread.
    """
    try:
        cursor = opaque.decode(HistoryCursor, text)
    except ValueError as e:
        raise _refused(str(e)) from e
    if cursor.thread != thread:
        raise _refused("it belongs to another replica or chat")
    return cursor


def _refused(why: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, "The history has no such page.", f"beforeCursor: {why}"
    )
