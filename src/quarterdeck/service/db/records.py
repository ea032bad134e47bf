"""Records of the interface from stored rows, of which some may be damaged.

A disk, another program or a service of another version may leave a row that is not valid: broken
JSON, an unknown word, a time outside the calendar. Such a row is left out of lists, with a line in
the log, so that it does not hide the others. Read by itself it is a `DamagedRecordError`.
"""

import logging
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from sqlalchemy import RowMapping

from quarterdeck.service.errors import DamagedRecordError
from quarterdeck.wire.base import first_error

log = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)
Row = TypeVar("Row")
Read = TypeVar("Read")
Shape = TypeVar("Shape", list[Any], dict[str, Any])
Word = TypeVar("Word", bound=StrEnum)

_YEARS = range(1970, 9999)
"""Others are damaged: near the ends of the calendar they cannot be computed with."""

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def as_record(kind: type[Model], values: Mapping[str, Any] | RowMapping) -> Model:
    """Return the record of a row's values.

    Raises:
        DamagedRecordError: they are not valid for it.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as e:
        noun = _WORD_START.sub(" ", kind.__name__).lower()
        raise DamagedRecordError(
            f"The stored {noun} is damaged and cannot be read. Restore the database from a backup, "
            "or delete it and make it again.",
            f"{values.get('id')}: {first_error(e)}",
        ) from e


def stored_json(text: str, shape: type[Shape]) -> Shape:
    """Return the list or object of a column with JSON.

    Raises:
        DamagedRecordError: it is not JSON, or something else.
    """
    try:
        value = from_json(text)
    except ValueError as e:
        raise _damaged(str(e)) from e
    if not isinstance(value, shape):
        raise _damaged(f"{type(value).__name__} instead of {shape.__name__}")
    return value


def stored_objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a column with a JSON list of them.

    Raises:
        DamagedRecordError: it is anything else.
    """
    values = stored_json(text, list)
    if not all(isinstance(value, dict) for value in values):
        raise _damaged("a list of something else than objects")
    return values


def stored_moment(text: str) -> datetime:
    """Return the moment of a column.

    Raises:
        DamagedRecordError: it is not a date-time with a zone of this program's time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError) as e:
        raise _damaged(str(e)) from e
    if moment.tzinfo is None or moment.year not in _YEARS:
        raise _damaged(f"no moment: {text}")
    return moment


def stored_word(text: str, words: type[Word]) -> Word:
    """Return the member of an enumeration that a column names.

    Raises:
        DamagedRecordError: it has no such member.
    """
    try:
        return words(text)
    except ValueError as e:
        raise _damaged(f"no {words.__name__}") from e


@contextmanager
def reading_values() -> Generator[None]:
    """Read values of stored JSON, which may have other types than this program writes.

    Raises:
        DamagedRecordError: what such values cause within the block.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise _damaged(f"{type(e).__name__}: {e}") from e


def _damaged(reason: str) -> DamagedRecordError:
    return DamagedRecordError(
        "A stored record is damaged and cannot be read. Restore the database from a backup, or "
        "delete it and make it again.",
        reason,
    )


def readable(rows: Iterable[Row], read: Callable[[Row], Read]) -> list[Read]:
    """Return what `read` makes of the rows, without those that are damaged."""
    records: list[Read] = []
    for row in rows:
        try:
            records.append(read(row))
        except DamagedRecordError as e:
            id = row.get("id") if isinstance(row, RowMapping) else None
            log.warning("A damaged row is left out of a list: %s: %s", id, e.for_operator())
    return records
