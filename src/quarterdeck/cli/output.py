"""What is printed: data on stdout, narration on stderr, neither with control sequences."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from quarterdeck.transcript.clean import clean, one_line

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def say(text: str) -> None:
    """A line of narration."""
    print(clean(text), file=sys.stderr, flush=True)  # noqa: T201


def put(text: str, end: str = "\n") -> None:
    """Text of agents, programs or names, made harmless."""
    put_safe(clean(text), end)


def put_safe(text: str, end: str = "\n") -> None:
    """Text that is harmless already."""
    print(text, end=end, flush=True)  # noqa: T201


def put_json(value: BaseModel | Any) -> None:
    """One line of JSON. A terminal that shows it is as safe as with plain text."""
    put_safe(json_text(value))


def json_text(value: BaseModel | Any) -> str:
    """JSON in which everything that a terminal could obey is escaped."""
    if isinstance(value, BaseModel):
        text = value.model_dump_json(by_alias=True)
    else:
        text = json.dumps(value, ensure_ascii=False, default=_plain)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one is not padded."""
    lines = [list(header), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        put_safe("  ".join(cells).rstrip())


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    return str(value)
