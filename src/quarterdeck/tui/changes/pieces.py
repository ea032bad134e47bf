"""Cuts the spans of a line at the places that stand out in it."""

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from quarterdeck.tui.transcript_view.lines import Line, Span

WORD = "word"
"""What differs from the line that took its place."""
MATCH = "match"
"""What was searched for."""

Range = tuple[int, int, str]

_LEAST_ALIKE = 0.3
"""Of lines that have less in common nothing stands out: they are other lines."""


def difference(text: str, other: str) -> Range | None:
    """The words of a line that its counterpart does not have."""
    before = _common(text, other)
    rest, other_rest = text[before:], other[before:]
    after = _common(rest[::-1], other_rest[::-1])
    shorter = min(len(text), len(other))
    if not shorter or (before + after) / shorter < _LEAST_ALIKE:
        return None
    begin, end = before, len(text) - after
    other_end = len(other) - after
    if _joined(text[:begin], text[begin:], other[begin:]):
        while begin > 0 and _is_word(text[begin - 1]):
            begin -= 1
    if _joined(text[end:][::-1], text[:end][::-1], other[:other_end][::-1]):
        while end < len(text) and _is_word(text[end]):
            end += 1
    return (begin, end, WORD) if begin < end else None


def _joined(alike: str, *rests: str) -> bool:
    """Whether what differs begins within a word."""
    return _is_word(alike[-1:]) and any(_is_word(rest[:1]) for rest in rests)


def _is_word(text: str) -> bool:
    return text.isalnum() or text == "_"


def _common(one: str, other: str) -> int:
    """How many characters they begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def matches(text: str, wanted: str) -> Iterator[Range]:
    """Where a text is found; capitals matter when there are any in what is wanted."""
    if wanted:
        for found in re.finditer(re.escape(wanted), text, case_flags(wanted)):
            yield found.start(), found.end(), MATCH


def case_flags(wanted: str) -> re.RegexFlag:
    """How to search for it."""
    return re.IGNORECASE if wanted == wanted.lower() else re.NOFLAG


def cut(spans: Line, ranges: Iterable[Range]) -> list[Span]:
    """The spans with what stands out as spans of its own, named in their `target`."""
    for begin, end, name in ranges:
        spans = tuple(_cut(spans, begin, end, name))
    return list(spans)


def _cut(spans: Line, begin: int, end: int, name: str) -> Iterator[Span]:
    at = 0
    for span in spans:
        text = span.text
        first, last = max(0, begin - at), max(0, min(end - at, len(text)))
        at += len(text)
        if first >= last:
            yield span
            continue
        if first:
            yield span._replace(text=text[:first])
        yield span._replace(text=text[first:last], target=name)
        if last < len(text):
            yield span._replace(text=text[last:])


def fold(spans: Iterable[Span], width: int) -> list[list[Span]]:
    """Rows of at most a width, cut at the same cells however the text is divided into spans."""
    rows: list[list[Span]] = [[]]
    used = 0
    for span in spans:
        begun = 0
        for end, cells in _steps(span.text, width, used):
            if used + cells > width:
                rows.append([])
                used = 0
            rows[-1].append(span._replace(text=span.text[begun:end]))
            used += cells
            begun = end
    return rows


def _steps(text: str, width: int, used: int) -> Iterator[tuple[int, int]]:
    """Ends of pieces of a text that are in one row each, with their cells."""
    if text.isascii():
        at, size = 0, len(text)
        while at < size:
            step = min(size - at, width - used if used < width else width)
            at += step
            used = used + step if used < width else step
            yield at, step
        return
    begun = piece = 0
    for at, character in enumerate(text):
        cells = cell_len(character)
        if used + cells > width:
            if at > begun:
                yield at, piece
            begun, piece, used = at, 0, 0
        piece += cells
        used += cells
    yield len(text), piece
