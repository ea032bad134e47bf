"""The opaque cursor of a file search: where the next page begins, and of which search."""

import hashlib

from pydantic import BaseModel, Field

from quarterdeck.service import opaque
from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode


class FileCursor(BaseModel):
    """`search` stands for what must stay unchanged from page to page."""

    offset: int = Field(ge=0, le=1 << 40)
    version: str
    search: str


def search_mark(workspace_id: str, q: str, prefix: str, limit: int) -> str:
    """Stands for one search of one workspace."""
    parts = (workspace_id, q, prefix, str(limit))
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]


def decode(text: str, search: str) -> FileCursor:
    """The cursor of a text.

    Raises:
        ApiError: INVALID_REQUEST when it is no cursor, or one of another search.
    """
    try:
        cursor = opaque.decode(FileCursor, text)
    except ValueError as e:
        raise _refused(str(e)) from e
    if cursor.search != search:
        raise _refused("q, prefix and limit must stay as they were")
    return cursor


def _refused(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, "The search has no such page.", f"cursor: {why}")
