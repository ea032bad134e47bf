"""Text on stdout and stderr: data and messages, tables, JSON, times; never control sequences."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import BaseModel

    from quarterdeck.wire.account import Service


WIDEST_COLUMN = 60
"""Characters that a column is padded to at most: one long cell must not widen every row."""
LONGEST_CELL = 1_000
"""Characters of a cell that are printed."""

Record = TypeVar("Record")

_HARMLESS = re.compile(r"[ -~\n\t]*")
_UNSAFE_IN_JSON = re.compile(
    "[\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)


def safe_text(text: str) -> str:
    """Return text without control sequences; newlines and tabs stay."""
    if _HARMLESS.fullmatch(text):
        return text
    try:
        from quarterdeck.transcript.text import clean  # 80 ms to import, and names are mostly plain
    except ModuleNotFoundError:  # inside a container, whose image has the engine's part only
        return "".join(each for each in text if each.isprintable() or each in "\n\t")
    return clean(text)


def safe_line(text: str) -> str:
    """Return the text on one line, without control sequences."""
    return " ".join(safe_text(text).split())


def safe_name(text: str) -> str:
    """Return a name on one line, and a word in place of one of which nothing can be shown."""
    if line := safe_line(text):
        return line
    from quarterdeck.transcript.text import UNNAMED

    return UNNAMED


def print_message(text: str) -> None:
    """Print a line for a person on stderr."""
    print(safe_text(text), file=sys.stderr, flush=True)  # noqa: T201


def print_text(text: str, end: str = "\n") -> None:
    """Print text on stdout without control sequences."""
    print_safe(safe_text(text), end)


def print_safe(text: str, end: str = "\n") -> None:
    """Print text on stdout that has no control sequences."""
    print(text, end=end, flush=True)  # noqa: T201


def print_json(value: "BaseModel | Any") -> None:
    """Print a value as one line of JSON, safe to show in a terminal."""
    print_safe(json_text(value))


def print_success(message: str, as_json: bool) -> None:
    """Report the success of a verb; with `--json` also on stdout."""
    if as_json:
        print_json({"success": True})
    print_message(message)


def json_text(value: "BaseModel | Any") -> str:
    """Return JSON with control characters escaped."""
    text = json.dumps(_plain(value), ensure_ascii=False, default=_plain)
    text = _UNSAFE_IN_JSON.sub(lambda match: _escaped(match[0]), text)
    if text.isascii():
        return text
    from quarterdeck.transcript.text import thin_marks

    return thin_marks(text, _escaped)


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns as wide as their widest cell, up to a limit; the last one is not padded."""
    lines = [list(header), *([_cell(cell) for cell in row] for row in rows)]
    widths = [
        min(WIDEST_COLUMN, max(len(line[column]) for line in lines))
        for column in range(len(header))
    ]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print_safe("  ".join(cells).rstrip())


def print_records(
    as_json: bool,
    name: str,
    records: "Iterable[Record]",
    header: Sequence[str],
    row: "Callable[[Record], Sequence[str]]",
) -> None:
    """Print records as a JSON list called `name`, or as a table."""
    if as_json:
        print_json({name: list(records)})
    else:
        print_table(header, map(row, records))


def _cell(text: str) -> str:
    line = safe_line(text[: 4 * LONGEST_CELL])
    return line if len(line) <= LONGEST_CELL else f"{line[: LONGEST_CELL - 1]}…"


def _plain(value: Any) -> Any:
    """Return a value that the JSON encoder supports."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    return cast(Any, value) if isinstance(value, dict | list | str) else str(value)


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def ago(moment: datetime) -> str:
    """Return the time since then in its largest unit: `3d`, `5h`, `12m`, `8s`."""
    seconds = max(0, int((datetime.now(UTC) - moment).total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def local_time(moment: datetime, now: datetime | None = None) -> str:
    """Return a time in the time zone of this machine, with its date unless it is today."""
    local, today = moment.astimezone(), (now or datetime.now(UTC)).astimezone()
    if local.date() == today.date():
        return f"{local:%H:%M}"
    return f"{local:%d %b %H:%M}" if local.year == today.year else f"{local:%Y-%m-%d %H:%M}"


def services_text(known: "Sequence[Service]") -> str:
    """Return the number of services that share the database: `1`, `2`, `3, 1 of them away`."""
    away = sum(not service.alive for service in known)
    return f"{len(known)}, {away} of them away" if away else str(len(known))


def last_seen_text(service: "Service") -> str:
    """Return when a service last reported."""
    return f"last seen {ago(service.seen_at)} ago" if service.seen_at else "never seen"
