"""Vim's motions: where a key leads, and which part of the text an operator takes on the way there."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Final, Literal

from quarterdeck.tui.vim.text import (
    first_text,
    is_empty_line,
    kind_of,
    last_column,
    line_end,
    line_start,
    lines_away,
    next_word,
    paragraph,
    previous_word,
    run_end,
    text_object,
    word_end,
)

_FAR = 10**9
"""The column that `$` keeps while the cursor moves up and down."""

SAME: Final = {
    "left": "h",
    "backspace": "h",
    "right": "l",
    "space": "l",
    " ": "l",
    "down": "j",
    "up": "k",
    "home": "0",
    "end": "$",
    "ctrl+left": "b",
    "ctrl+right": "w",
}
"""Other keys of motions."""
_LINEWISE: Final = frozenset("jkG") | {"gg"}
_INCLUSIVE: Final = frozenset("eE$")
_EXCLUSIVE: Final = frozenset("bB{}")
"""Those that may end at the start of a line. Words have a rule of their own."""


@dataclass(frozen=True)
class TextRange:
    """A part of the text; `end` is not in it. `target` is where the motion leads."""

    start: int
    end: int
    target: int
    lines: bool = False


def _up_to(text: str, first: int, last: int, target: int) -> TextRange:
    """Return a part that ends before `last`: at the start of a line, before the line break there."""
    if last == line_start(text, last) > line_start(text, first):
        return TextRange(first, last - 1, target, lines=first <= first_text(text, first))
    return TextRange(first, last, target)


def whole_lines(text: str, span: TextRange) -> TextRange:
    """Return whole lines for a part of several that leaves only blanks of them."""
    start, end = sorted((span.start, span.end))
    before = text[line_start(text, start) : start]
    after = text[end : line_end(text, end)]
    whole = "\n" in text[start:end] and not before.strip() and not after.strip()
    return replace(span, lines=True) if whole else span


class Motions:
    """Reads motions. Remembers the column of vertical ones, and the last search in a line."""

    def __init__(self) -> None:
        self._column = 0
        self._search = ("", "")
        """The command and the character."""

    def keep_column(self, text: str, at: int) -> None:
        """Note the column that moves up and down lead to."""
        self._column = at - line_start(text, at)

    def read(
        self, text: str, at: int, key: str, count: int | None, operator: str, *, objects: bool
    ) -> Generator[None, str, tuple[TextRange | None, tuple[str, ...]]]:
        """Read the rest of a motion from its first key on.

        Return what it covers, None when it leads nowhere, and its keys. With an operator, the part is
        what that takes. `objects`: whether `i` and `a` begin one.
        """
        key = SAME.get(key, key)
        keys: tuple[str, ...] = (key,)
        match key:
            case "f" | "F" | "t" | "T":
                character = yield
                keys = (key, character)
                self._search = keys
                span = _search(text, at, keys, count or 1, operator)
            case ";" | ",":
                command, character = self._search
                again = (command.swapcase() if key == "," else command), character
                span = _search(text, at, again, count or 1, operator, again=True)
            case "i" | "a" if objects:
                name = yield
                found = text_object(text, at, name, around=key == "a")
                keys, span = (key, name), TextRange(*found, found[0]) if found else None
            case "g":
                keys = (key, (yield))
                span = self._span(text, at, "".join(keys), count, operator)
            case _:
                span = self._span(text, at, key, count, operator)
        return span, keys

    def _span(
        self, text: str, at: int, key: str, count: int | None, operator: str
    ) -> TextRange | None:
        target = self._target(text, at, key, count)
        if target is None:
            return None
        if key in _LINEWISE:
            return TextRange(at, target, target, lines=True)
        if key in ("w", "W") and operator:
            return _words(text, at, key == "W", count or 1, operator)
        if key == "$":
            self._column = _FAR
        if operator and key == "l":
            target = min(at + (count or 1), line_end(text, at))
        inclusive = bool(operator) and key in _INCLUSIVE and target < line_end(text, target)
        first, last = sorted((at, target + inclusive))
        if operator and key in _EXCLUSIVE:
            return _up_to(text, first, last, target)
        return TextRange(first, last, target)

    def _target(self, text: str, at: int, key: str, count: int | None) -> int | None:
        times = count or 1
        match key:
            case "h":
                return max(line_start(text, at), at - times)
            case "l":
                return min(last_column(text, at), at + times)
            case "0":
                return line_start(text, at)
            case "^":
                return first_text(text, at)
            case "j" | "k" | "$" | "gg" | "G":
                return self._line_target(text, at, key, count)
            case "{" | "}":
                return _paragraphs(text, at, 1 if key == "}" else -1, times)
            case "w" | "W" | "b" | "B" | "e" | "E":
                move = {"w": next_word, "b": previous_word, "e": word_end}[key.lower()]
                if move is previous_word and at == 0:
                    return None
                return _moved(move, text, at, key.isupper(), times)
            case _:
                return None

    def _line_target(self, text: str, at: int, key: str, count: int | None) -> int | None:
        times = count or 1
        match key:
            case "gg" | "G":
                if key == "G" and count is None:
                    return first_text(text, len(text))
                found = lines_away(text, 0, times - 1)
                return first_text(text, found or 0)
            case "$":
                start = lines_away(text, at, times - 1)
                return None if start is None else last_column(text, start)
            case _:
                start = lines_away(text, at, times if key == "j" else -times)
                if start is None:
                    return None
                return min(start + self._column, last_column(text, start))


def _moved(move: Callable[[str, int, bool], int], text: str, at: int, big: bool, times: int) -> int:
    for _ in range(times):
        before, at = at, move(text, at, big)
        if at == before:
            break
    return at


def _paragraphs(text: str, at: int, by: Literal[-1, 1], times: int) -> int | None:
    for left in range(times - 1, -1, -1):
        at = paragraph(text, at, by)
        if left and at in (0, len(text)):
            return None
    return at


def _words(text: str, at: int, big: bool, times: int, operator: str) -> TextRange:
    """Return what an operator takes of words: not the line break after the last one."""
    if operator == "c" and kind_of(text[at : at + 1] or " ", big):
        end = _moved(word_end, text, run_end(text, at, big), big, times - 1)
        return TextRange(at, end + 1, at)
    last = _moved(next_word, text, at, big, times - 1)
    end = next_word(text, last, big)
    if "\n" in text[last:end]:
        if is_empty_line(text, last):
            return _up_to(text, at, last + 1, at)
        end = line_end(text, last)
    return TextRange(at, end, at)


def _search(
    text: str,
    at: int,
    search: tuple[str, str],
    times: int,
    operator: str,
    *,
    again: bool = False,
) -> TextRange | None:
    """Return the way to a character in this line."""
    command, character = search
    if not command or len(character) != 1:
        return None
    first, last = line_start(text, at), line_end(text, at)
    by = 1 if command in "ft" else -1
    till = by if command in "tT" else 0
    place = at + till * (again and times == 1)  # not the character that the cursor is next to
    for _ in range(times):
        place = (
            text.find(character, place + 1, last)
            if by > 0
            else text.rfind(character, first, max(first, place))
        )
        if place < 0:
            return None
    target = place - till
    return TextRange(at, target + bool(operator and by > 0), target)
