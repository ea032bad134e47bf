"""The lines of a journal's file that can be read, whatever has happened to the file."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import NamedTuple

from pydantic_core import from_json

from quarterdeck.wire.engine import LARGEST_INDEX

_INDEX = b'{"index":'
_BEGINNINGS = re.compile(rb'\{"index":[0-9]|#\{"kind":"')
REST_TRIES = 4
"""Most places in a damaged line where another one is looked for."""


class JournalLine(NamedTuple):
    """The place of a line that can be read."""

    offset: int
    size: int
    type: str
    number: int | None
    """Its index; None for a note."""


@dataclass
class JournalLines:
    """The readable lines of a journal, in order, with increasing indices."""

    lines: list[JournalLine] = field(default_factory=list[JournalLine])
    lost: int = 0
    is_whole: bool = True
    """False when the file has more than these lines, but for a torn end."""

    def add(self, place: JournalLine) -> None:
        """Add a line, unless its index is not above the last one.

        Where only the last one does not fit between its neighbors, that one is dropped: a damaged
        number must not hide all that follow.
        """
        if place.number is not None:
            last, before = self._newest(1), self._newest(2)
            if place.number == last or place.number <= before:
                self.drop()
                return
            if place.number < last:
                self.lines.pop(self._numbered.pop())
                self.drop()
            self._numbered.append(len(self.lines))
        self.lines.append(place)

    def drop(self) -> None:
        """Count a line that cannot be read."""
        self.lost += 1
        self.is_whole = False

    def __post_init__(self) -> None:
        self._numbered: list[int] = []

    def _newest(self, number: int) -> int:
        if len(self._numbered) < number:
            return 0
        return self.lines[self._numbered[-number]].number or 0


def read_lines(path: Path) -> JournalLines:
    """Read every line of a journal.

    Raises:
        OSError: the file cannot be read.
    """
    found, offset = JournalLines(), 0
    with path.open("rb") as file:
        for line in file:
            place, ends = _place_of(line, offset), line.endswith(b"\n")
            if place is None and ends:
                found.drop()
                place = _rest_of(line, offset)
            if place is not None:
                found.add(place)
                found.is_whole = found.is_whole and ends
            offset += len(line)
    return found


def _place_of(line: bytes, offset: int) -> JournalLine | None:
    """Return a line's place; None when it cannot be read."""
    try:
        if line.startswith(b"#"):
            match from_json(line[1:]):
                case {"kind": str(kind), "data": dict()}:
                    return JournalLine(offset, len(line), intern(f"#{kind}"), None)
                case _:
                    return None
        index = index_of(line)
        match from_json(line):
            # Two lines that became one have two indices: the first is the line's, the last is read.
            case {"index": read, "ts": str(), "type": str(type), "payload": dict()} if (
                index and read == index
            ):
                return JournalLine(offset, len(line), intern(type), index)
            case _:
                return None
    except ValueError:
        return None


def _rest_of(line: bytes, offset: int) -> JournalLine | None:
    """Return the readable end of a damaged line: the next line after one that lost its end."""
    for match in (*_BEGINNINGS.finditer(line, 1),)[-REST_TRIES:]:
        if place := _place_of(line[match.start() :], offset + match.start()):
            return place
    return None


def index_of(line: bytes) -> int | None:
    """Return the index in a line; None for a note, and where there is none."""
    if not line.startswith(_INDEX):
        return None
    digits = line[len(_INDEX) : line.find(b",", len(_INDEX))]
    index = int(digits) if digits.isdigit() and len(digits) <= 16 else 0
    return index if 0 < index <= LARGEST_INDEX else None
