"""What is handed to the journal: events to number and publish, notes to keep for the engine."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json

from quarterdeck.wire.events import EventType

ENTRY_LIMIT = 32 << 20
"""Longest payload of one entry in bytes; half of what a line of the link may hold."""


class EntryTooLarge(ValueError):
    """A payload over `ENTRY_LIMIT`. Nothing was written."""


@dataclass(frozen=True)
class Draft:
    """An entry without its number. `content` is the payload as JSON."""

    type: str
    ts: str
    content: bytes

    def line(self, index: int) -> bytes:
        return b'{"index":%d,"ts":"%s","type":"%s","payload":%s}' % (
            index,
            self.ts.encode(),
            self.type.encode(),
            self.content,
        )


@dataclass(frozen=True)
class Note:
    """A line that only the engine reads, at its next start."""

    content: bytes

    def line(self) -> bytes:
        return b"#" + self.content


def event(type: EventType, payload: BaseModel | dict[str, Any]) -> Draft:
    """An entry of the event stream, dated now.

    Raises:
        EntryTooLarge: the payload is over `ENTRY_LIMIT`.
    """
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Draft(type.value, moment, _encode(payload))


def note(kind: str, data: BaseModel | dict[str, Any]) -> Note:
    """A note of some kind."""
    return Note(_encode({"kind": kind, "data": data}))


def payload_of_line(line: bytes) -> dict[str, Any]:
    """The payload of an entry's line, or the data of a note's."""
    content = from_json(line)
    return content["payload"] if "payload" in content else content["data"]


def _encode(payload: BaseModel | dict[str, Any]) -> bytes:
    try:
        content = to_json(payload, by_alias=True)
    except (PydanticSerializationError, UnicodeEncodeError):
        content = to_json(_without_surrogates(_plain(payload)), by_alias=True)
    if len(content) > ENTRY_LIMIT:
        raise EntryTooLarge(f"An entry of {len(content)} bytes is over the limit.")
    return content


def _plain(payload: BaseModel | dict[str, Any]) -> object:
    return payload.model_dump(by_alias=True) if isinstance(payload, BaseModel) else payload


def _without_surrogates(value: object) -> object:
    """Half a surrogate pair, as an agent may send it, cannot be written as UTF-8."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            pairs = cast("dict[object, object]", value).items()
            return {_without_surrogates(key): _without_surrogates(one) for key, one in pairs}
        case list():
            return [_without_surrogates(one) for one in cast("list[object]", value)]
        case BaseModel():
            return _without_surrogates(value.model_dump(by_alias=True))
        case _:
            return value
