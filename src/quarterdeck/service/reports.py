"""Bounds of what engines report.

An engine runs inside the sandbox, so it may report anything; what is stored as rows is part of many
answers. Bounds are here and not in the models, because rows of earlier versions are read with these.
"""

from itertools import islice
from typing import Any, cast

from pydantic_core import to_json

from quarterdeck.wire.engine import JournalEntry
from quarterdeck.wire.events import EventType
from quarterdeck.wire.setup import HOOK_OUTPUT_LIMIT

REPORT_LIMIT = 4 << 20
"""Most bytes of a bounded report, as JSON; a longer one is not read."""
TEXT_LIMIT = 4_096
"""Characters of a text, such as a path or an address, without a limit of its own."""
LIST_LIMIT = 1_000
"""Items of a list without a limit of its own."""
IDS_LIMIT = 20_000
"""Messages of a queue: none may be left out of its changes."""
FIELDS_LIMIT = 100
"""Fields of an object."""
DEEPEST = 8
"""Levels that are kept."""
MOST_REPOSITORIES = 100
OBJECTIVE_LIMIT = 20_000
"""Characters of a goal's objective."""

_TEXTS = {
    "title": 500,
    "name": 200,
    "hookname": 200,
    "lastmessagetext": 500,
    "objective": OBJECTIVE_LIMIT,
    "output": HOOK_OUTPUT_LIMIT,
    "fulldiff": 1 << 20,
}
_LISTS = {
    "repos": MOST_REPOSITORIES,
    "commits": 50,
    "untracked": 100,
    **dict.fromkeys(("queue", "canceledmessageids", "steeredmessageids", "messageids"), IDS_LIMIT),
}
"""Limits by field, in lower case without underscores: the models take two spellings."""
_WHOLE = frozenset(("models", "settings", "log"))
"""Fields with limits where they are stored."""
_BOUNDED = frozenset(EventType) - {EventType.CHAT_TURN_DELTA, EventType.ENGINE_STATUS_CHANGED}
"""Types whose events may change rows."""


def bounded(entry: JournalEntry) -> JournalEntry | None:
    """Return an entry with its texts and lists cut; None if it is too long even so.

    One of an unknown type, or with an event of an agent, is only part of the log, and is returned as
    it is.
    """
    if entry.type not in _BOUNDED:
        return entry
    payload = {
        name: value if name in _WHOLE else _cut(value, name)
        for name, value in _first_fields(entry.payload).items()
    }
    short = {name: value for name, value in payload.items() if name not in _WHOLE}
    if len(to_json(short, inf_nan_mode="null")) > REPORT_LIMIT:
        return None
    return entry.model_copy(update={"payload": payload})


def bounded_json(value: Any) -> Any:
    """Return a JSON value with its texts and lists cut."""
    return _cut(value, "")


def _cut(value: Any, field: str, level: int = 0) -> Any:
    name = field.replace("_", "").lower()
    match value:
        case str():
            return value[: _TEXTS.get(name, TEXT_LIMIT)]
        case list() | dict() if level == DEEPEST:
            return None
        case list():
            items = cast("list[Any]", value)[: _LISTS.get(name, LIST_LIMIT)]
            return [_cut(item, field, level + 1) for item in items]
        case dict():
            fields = _first_fields(cast("dict[str, Any]", value))
            return {key: _cut(item, key, level + 1) for key, item in fields.items()}
        case _:
            return value


def _first_fields(value: dict[str, Any]) -> dict[str, Any]:
    if len(value) <= FIELDS_LIMIT and all(len(name) <= TEXT_LIMIT for name in value):
        return value
    named = (pair for pair in value.items() if len(pair[0]) <= TEXT_LIMIT)
    return dict(islice(named, FIELDS_LIMIT))
