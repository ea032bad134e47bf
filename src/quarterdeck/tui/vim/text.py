"""Places in a text: lines, words, paragraphs, and the objects of vim's `iw` and `a(`."""

import re
from typing import Final, Literal

# places in a text


def line_start(text: str, at: int) -> int:
    """Return the start of the line of a position."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the end of the line of a position, where its line break is."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def last_column(text: str, at: int) -> int:
    """Return the last character of the line of a position; the start of an empty line."""
    return max(line_start(text, at), line_end(text, at) - 1)


def first_text(text: str, at: int) -> int:
    """Return the first character of a line that is not blank, else its last one."""
    start, end = line_start(text, at), line_end(text, at)
    blanks = len(text[start:end]) - len(text[start:end].lstrip())
    return min(start + blanks, last_column(text, at))


def lines_away(text: str, at: int, by: int) -> int | None:
    """Return the start of the line `by` lines below or above, or of the last one on the way.

    None when there is no line on the way.
    """
    start = line_start(text, at)
    for done in range(abs(by)):
        end = line_end(text, start)
        if (by < 0 and start == 0) or (by > 0 and end == len(text)):
            return start if done else None
        start = line_start(text, start - 1) if by < 0 else end + 1
    return start


def kind_of(character: str, big: bool) -> int:
    """Return 0 for a blank; characters of one kind are a word. A big word ends at a blank only."""
    if character.isspace():
        return 0
    return 1 if big or character.isalnum() or character == "_" else 2


def is_empty_line(text: str, at: int) -> bool:
    """Return whether a position is all of its line."""
    return text[at : at + 1] in ("", "\n") and (at == 0 or text[at - 1] == "\n")


def next_word(text: str, at: int, big: bool) -> int:
    """Return the start of the next word; an empty line is one."""
    if at < len(text) and (kind := kind_of(text[at], big)):
        while at < len(text) and kind_of(text[at], big) == kind:
            at += 1
    elif at < len(text):
        at += 1
    while at < len(text) and not kind_of(text[at], big) and not is_empty_line(text, at):
        at += 1
    return at


def previous_word(text: str, at: int, big: bool) -> int:
    """Return the start of this word or of the previous one."""
    at -= 1
    while at > 0 and not kind_of(text[at], big) and not is_empty_line(text, at):
        at -= 1
    if at <= 0:
        return 0
    kind = kind_of(text[at], big)
    while kind and at > 0 and kind_of(text[at - 1], big) == kind:
        at -= 1
    return at


def word_end(text: str, at: int, big: bool) -> int:
    """Return the last character of this word or of the next one."""
    at += 1
    while at < len(text) and not kind_of(text[at], big):
        at += 1
    if at >= len(text):
        return max(0, len(text) - 1)
    return run_end(text, at, big)


def run_end(text: str, at: int, big: bool) -> int:
    """Return the last character of the word, or of the blanks, at a position."""
    while at + 1 < len(text) and kind_of(text[at + 1], big) == kind_of(text[at], big):
        if text[at + 1] == "\n":
            break
        at += 1
    return at


def paragraph(text: str, at: int, by: Literal[-1, 1]) -> int:
    """Return the next empty line after text, or before it; else the end or the start."""
    start: int | None = line_start(text, at)
    seen_text = False
    while (start := lines_away(text, start, by)) is not None:
        if not is_empty_line(text, start):
            seen_text = True
        elif seen_text or not is_empty_line(text, line_start(text, at)):
            return start
    return 0 if by < 0 else len(text)


# text objects, such as the inner word

_PAIRS: Final = {
    **dict.fromkeys("()b", "()"),
    **dict.fromkeys("[]", "[]"),
    **dict.fromkeys("{}B", "{}"),
    **dict.fromkeys("<>", "<>"),
}


def text_object(text: str, at: int, name: str, around: bool) -> tuple[int, int] | None:
    """Return start and end of an object around a position, or None."""
    if name in ("w", "W"):
        return _word_object(text, at, name == "W", around)
    if name in ("'", '"', "`"):
        return _quoted(text, at, name, around)
    if name in _PAIRS:
        return _bracketed(text, at, _PAIRS[name], around)
    return None


def _word_object(text: str, at: int, big: bool, around: bool) -> tuple[int, int] | None:
    first, last = line_start(text, at), line_end(text, at)
    if first == last:
        return at, at
    end = run_end(text, at, big) + 1
    start = at
    while start > first and kind_of(text[start - 1], big) == kind_of(text[at], big):
        start -= 1
    if not around:
        return start, end
    if not kind_of(text[at], big):
        return start, min(last, word_end(text, end - 1, big) + 1)
    return _with_blanks(text, start, end)


def _with_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a part with the blanks after it; at the end of a line with those before it."""
    first, last = line_start(text, start), line_end(text, end)
    after = end
    while after < last and text[after].isspace():
        after += 1
    if after == end and (stripped := text[first:start].rstrip()):  # the indentation stays
        start = first + len(stripped)
    return start, after


def _quoted(text: str, at: int, quote: str, around: bool) -> tuple[int, int] | None:
    first = line_start(text, at)
    line = text[first : line_end(text, at)]
    for found in re.finditer(rf"{quote}(?:\\.|[^{quote}\\])*{quote}", line):
        if found.end() > at - first:
            start, end = first + found.start(), first + found.end()
            return _with_blanks(text, start, end) if around else (start + 1, end - 1)
    return None


def _bracketed(text: str, at: int, pair: str, around: bool) -> tuple[int, int] | None:
    opens = _unmatched(text, at, -1, *pair) if text[at : at + 1] != pair[0] else at
    closes = None if opens is None else _unmatched(text, opens + 1, 1, *reversed(pair))
    if opens is None or closes is None:
        return None
    return (opens, closes + 1) if around else (opens + 1, closes)


def _unmatched(text: str, at: int, by: int, wanted: str, other: str) -> int | None:
    depth = 0
    if by < 0:
        at -= 1
    while 0 <= at < len(text):
        if text[at] == other:
            depth += 1
        elif text[at] == wanted:
            if not depth:
                return at
            depth -= 1
        at += by
    return None
