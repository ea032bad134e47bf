"""Variables from the text of a `.env` file: what it says, and what it would change."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from quarterdeck.store.environment_contents import Entry
from quarterdeck.wire.environment_variables import (
    KEY_PATTERN,
    RESERVED_KEYS,
    VALUE_LIMIT,
    EnvironmentVariable,
)

_KEY = re.compile(KEY_PATTERN)
_START = re.compile(r"[ \t]*(?:export[ \t]+)?([^\s=#'\"]+)[ \t]*=[ \t]*")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


@dataclass(frozen=True)
class Line:
    """One assignment, or a line that is none: then `problem` says why. Lines count from 1."""

    number: int
    key: str = ""
    value: str = field(default="", repr=False)
    problem: str = ""


class Effect(StrEnum):
    """What a paste does to a key."""

    ADD = "add"
    CHANGE = "change"
    SAME = "same"
    WRONG = "wrong"


@dataclass(frozen=True)
class Change:
    """What becomes of one assignment. `id` is the own variable that is changed."""

    effect: Effect
    key: str
    value: str = field(default="", repr=False)
    id: UUID | None = None
    note: str = ""


def parse(text: str) -> list[Line]:
    """The assignments of a `.env` file; comments and empty lines are left out.

    `export` before a key, single quotes (as they stand) and double quotes (with escapes) over
    several lines, and a comment behind a bare value are understood. Nothing is expanded.
    """
    lines: list[Line] = []
    at, number = 0, 1
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    while at < len(text):
        found, end = _line(text, at, number)
        if found is not None:
            lines.append(found)
        number += text.count("\n", at, end)
        at = end
    return lines


def _line(text: str, at: int, number: int) -> tuple[Line | None, int]:
    """What begins here, and where the next line does."""
    end = _after_line(text, at)
    bare = text[at:end].strip()
    if not bare or bare.startswith("#"):
        return None, end
    start = _START.match(text, at, end)
    if start is None:
        return Line(number, problem="It is no NAME=value."), end
    key, at = start[1], start.end()
    quote = text[at : at + 1]
    if quote in {"'", '"'}:
        return _quoted(text, at, number, key, quote)
    value = re.split(r"(?:^|\s)#", text[at:end].rstrip("\n"), maxsplit=1)[0].strip()
    return Line(number, key, value), end


def _quoted(text: str, at: int, number: int, key: str, quote: str) -> tuple[Line, int]:
    closed = _closing(text, at + 1, quote)
    if closed is None:
        return Line(number, key, problem="Its quote is not closed."), _after_line(text, at)
    inner = text[at + 1 : closed]
    end = _after_line(text, closed)
    rest = text[closed + 1 : end].strip()
    if rest and not rest.startswith("#"):
        return Line(number, key, problem="Something stands behind its quote."), end
    value = inner if quote == "'" else re.sub(r"\\(.)", _unescaped, inner, flags=re.DOTALL)
    return Line(number, key, value), end


def _closing(text: str, at: int, quote: str) -> int | None:
    while at < len(text):
        if text[at] == quote:
            return at
        at += 2 if text[at] == "\\" and quote == '"' else 1
    return None


def _after_line(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[0])


def plan(
    lines: Sequence[Line], known: Iterable[Entry[EnvironmentVariable]], *, bound: bool
) -> list[Change]:
    """What a paste would change, in its order; the last of several lines of one key counts.

    `bound`: what is inherited may be overridden only where it allows that.
    """
    entries = {entry.record.key: entry for entry in known}
    last = {line.key: place for place, line in enumerate(lines) if not line.problem}
    return [
        _change(line, entries.get(line.key), bound)
        for place, line in enumerate(lines)
        if line.problem or last[line.key] == place
    ]


def _change(line: Line, known: Entry[EnvironmentVariable] | None, bound: bool) -> Change:
    if wrong := line.problem or _fault(line):
        name = line.key if _KEY.search(line.key) else ""
        return Change(Effect.WRONG, name or f"line {line.number}", note=wrong)
    if known is None:
        return Change(Effect.ADD, line.key, line.value)
    if not known.own:
        if bound and not known.record.personal_override_allowed:
            return Change(Effect.WRONG, line.key, note=f"{known.of.name} does not let it change.")
        return Change(Effect.ADD, line.key, line.value, note=f"over that of {known.of.name}")
    same = known.record.value == line.value
    return Change(Effect.SAME if same else Effect.CHANGE, line.key, line.value, known.record.id)


def _fault(line: Line) -> str:
    if not _KEY.search(line.key):
        return "A name has letters, digits and _, and begins with no digit."
    if line.key in RESERVED_KEYS:
        return "The sandbox sets it itself."
    if "\0" in line.value:
        return "A NUL character is not allowed."
    if len(line.value.encode(errors="surrogatepass")) > VALUE_LIMIT:
        return f"At most {VALUE_LIMIT} bytes."
    return ""


def words(changes: Sequence[Change]) -> str:
    """What a paste would do, counted."""
    counted = {effect: sum(one.effect is effect for one in changes) for effect in Effect}
    named = {
        Effect.ADD: "added",
        Effect.CHANGE: "changed",
        Effect.SAME: "stay as they are",
        Effect.WRONG: "cannot be taken",
    }
    return ", ".join(f"{count} {named[effect]}" for effect, count in counted.items() if count)
