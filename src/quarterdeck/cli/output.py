"""What is printed: data on stdout, narration on stderr, neither with control sequences."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import BaseModel

_HARMLESS = re.compile(r"[ -~\n\t]*")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """Text without anything that a terminal could obey; newlines and tabs stay."""
    if _HARMLESS.fullmatch(text):
        return text
    from quarterdeck.transcript.clean import clean  # 80 ms, and names are mostly plain

    return clean(text)


def safe_line(text: str) -> str:
    """The same in one line."""
    return " ".join(safe(text).split())


def say(text: str) -> None:
    """A line of narration."""
    print(safe(text), file=sys.stderr, flush=True)  # noqa: T201


def put(text: str, end: str = "\n") -> None:
    """Text of agents, programs or names, made harmless."""
    put_safe(safe(text), end)


def put_safe(text: str, end: str = "\n") -> None:
    """Text that is harmless already."""
    print(text, end=end, flush=True)  # noqa: T201


def put_json(value: "BaseModel | Any") -> None:
    """One line of JSON. A terminal that shows it is as safe as with plain text."""
    put_safe(json_text(value))


def json_text(value: "BaseModel | Any") -> str:
    """JSON in which everything that a terminal could obey is escaped."""
    text = json.dumps(_plain(value), ensure_ascii=False, default=_plain)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one is not padded."""
    lines = [list(header), *([safe_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        put_safe("  ".join(cells).rstrip())


def _plain(value: Any) -> Any:
    """What the JSON encoder knows, of a model or anything else."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    return cast(Any, value) if isinstance(value, dict | list | str) else str(value)
