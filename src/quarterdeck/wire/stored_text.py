"""Text that is stored, or given to programs: no NUL in it, and bounds in bytes.

PostgreSQL stores no NUL, and no path, variable or argument can hold one. The validators stand after
a field's bounds, so that these are part of its schema.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

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
    """UTF-8 of at most `limit` bytes."""

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
