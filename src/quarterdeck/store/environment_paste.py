"""Variables from the text of a `.env` file, and the changes that they make."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.wire.environment_parts import (
    KEY_PATTERN,
    RESERVED_KEYS,
    VALUE_LIMIT,
    EnvironmentVariable,
)

if TYPE_CHECKING:
    from quarterdeck.store.environments import InheritedPart

_KEY = re.compile(KEY_PATTERN)
_START = re.compile(r"[ \t]*(?:export[ \t]+)?([^\s=#'\"]+)[ \t]*=[ \t]*")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "`": "`"}


@dataclass(frozen=True)
class Line:
    """One assignment, or an invalid line: then `problem` says why. Lines count from 1."""

    number: int
    key: str = ""
    value: str = field(default="", repr=False)
    problem: str = ""


class Effect(StrEnum):
    """The effect of a paste on a key."""

    ADD = "add"
    CHANGE = "change"
    SAME = "same"
    WRONG = "wrong"


@dataclass(frozen=True)
class VariableChange:
    """The effect of one assignment. `id` is the own variable that is changed."""

    effect: Effect
    key: str
    value: str = field(default="", repr=False)
    id: UUID | None = None
    note: str = ""


def parse(text: str) -> list[Line]:
    """Return the assignments of a `.env` file; comments and empty lines are left out.

    Supports `export` before a key, single quotes (literal) and double quotes (with escapes) over
    several lines, and a comment after an unquoted value. Nothing is expanded.
    """
    lines: list[Line] = []
    at, number = 0, 1
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    while at < len(text):
        line, end = _line(text, at, number)
        if line is not None:
            lines.append(line)
        number += text.count("\n", at, end)
        at = end
    return lines


def _line(text: str, at: int, number: int) -> tuple[Line | None, int]:
    """Return the line that starts at `at`, and the start of the next line."""
    end = _after_line(text, at)
    bare = text[at:end].strip()
    if not bare or bare.startswith("#"):
        return None, end
    start = _START.match(text, at, end)
    if start is None:
        return Line(number, problem="Not NAME=value."), end
    key, at = start[1], start.end()
    quote = text[at : at + 1]
    if quote in {"'", '"'}:
        return _quoted(text, at, number, key, quote)
    value = re.split(r"(?:^|\s)#", text[at:end].rstrip("\n"), maxsplit=1)[0].strip()
    return Line(number, key, value), end


def _quoted(text: str, at: int, number: int, key: str, quote: str) -> tuple[Line, int]:
    closed = _closing(text, at + 1, quote)
    if closed is None:
        return Line(number, key, problem="Unclosed quote."), _after_line(text, at)
    inner = text[at + 1 : closed]
    end = _after_line(text, closed)
    rest = text[closed + 1 : end].strip()
    if rest and not rest.startswith("#"):
        return Line(number, key, problem="Unexpected text after the closing quote."), end
    value = inner if quote == "'" else re.sub(r"\\(.)", _unescaped, inner, flags=re.DOTALL)
    return Line(number, key, value), end


def _closing(text: str, at: int, quote: str) -> int | None:
    while at < len(text):
        if text[at] == quote:
            return at
        at += 2 if text[at] == "\\" and quote == '"' else 1
    return None


def _after_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[0])


def plan(
    lines: Sequence[Line], known: "Iterable[InheritedPart[EnvironmentVariable]]", *, bound: bool
) -> list[VariableChange]:
    """Return the changes of a paste, in its order; the last of several lines of one key counts.

    `bound`: an inherited variable can be overridden only where it allows that.
    """
    entries = {entry.record.key: entry for entry in known}
    last = {line.key: place for place, line in enumerate(lines) if not line.problem}
    return [
        _change(line, entries.get(line.key), bound)
        for place, line in enumerate(lines)
        if line.problem or last[line.key] == place
    ]


def _change(
    line: Line, known: "InheritedPart[EnvironmentVariable] | None", bound: bool
) -> VariableChange:
    if wrong := fault_of(line):
        name = line.key if _KEY.search(line.key) else ""
        return VariableChange(Effect.WRONG, name or f"line {line.number}", note=wrong)
    if known is None:
        return VariableChange(Effect.ADD, line.key, line.value)
    if not known.own:
        if bound and not known.record.personal_override_allowed:
            return VariableChange(
                Effect.WRONG, line.key, note=f"{known.of.name} does not let it change."
            )
        return VariableChange(
            Effect.ADD, line.key, line.value, note=f"over that of {known.of.name}"
        )
    same = known.record.value == line.value
    return VariableChange(
        Effect.SAME if same else Effect.CHANGE, line.key, line.value, known.record.id
    )


def fault_of(line: Line) -> str:
    """Return why a line is not a valid variable; empty when it is."""
    if line.problem:
        return line.problem
    if not _KEY.search(line.key):
        return "Use letters, digits and _; do not start with a digit."
    if line.key in RESERVED_KEYS:
        return "The sandbox sets it itself."
    if "\0" in line.value:
        return "A NUL character is not allowed."
    if len(line.value.encode(errors="surrogatepass")) > VALUE_LIMIT:
        return f"At most {VALUE_LIMIT} bytes."
    return ""


def counts_text(changes: Sequence[VariableChange]) -> str:
    """Return the number of changes of each kind, as text."""
    counts = {effect: sum(change.effect is effect for change in changes) for effect in Effect}
    named = {
        Effect.ADD: "added",
        Effect.CHANGE: "changed",
        Effect.SAME: "unchanged",
        Effect.WRONG: "invalid",
    }
    return ", ".join(f"{count} {named[effect]}" for effect, count in counts.items() if count)
