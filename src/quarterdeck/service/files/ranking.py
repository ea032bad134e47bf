"""Which files match a search, best first.

A file matches when it holds the letters of every word of the query in order, whatever their case.
The matcher finds and scores these as fzf does; the best of them, by whole path and by file name,
are then sorted by what a person means (`fitting.Fit`), the shorter name and path first.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from frizbee import Match, Matcher

from quarterdeck.service.files.fitting import Fit, fit_of
from quarterdeck.service.files.prepared import Prepared

CANDIDATES = 1_000
"""Best matches by path, and as many by name, that are looked at one by one."""

STEP = 10_000.0
"""Between two kinds of match."""

Found = tuple[int, float]
"""A position in the index and a score."""


class Results(Protocol):
    """Files in the order of a search."""

    def __len__(self) -> int: ...

    def page(self, offset: int, limit: int) -> Sequence[Found]:
        """Up to `limit` of them."""
        ...


class Listed:
    """All files, by repository and path."""

    def __init__(self, index: Prepared) -> None:
        self._positions = index.listing

    def __len__(self) -> int:
        return len(self._positions)

    def page(self, offset: int, limit: int) -> Sequence[Found]:
        """Up to `limit` files, with the score 0."""
        return [(position, 0.0) for position in self._positions[offset : offset + limit]]


class Ranked:
    """Matches in order. What lies behind the candidates is only looked at when a page gets there."""

    def __init__(self, top: Sequence[Found], matches: Sequence[Match]) -> None:
        self._top = top
        self._matches = matches

    def __len__(self) -> int:
        return max(len(self._top), len(self._matches))

    def page(self, offset: int, limit: int) -> Sequence[Found]:
        """Up to `limit` matches."""
        end = offset + limit
        if end <= len(self._top) or len(self) == len(self._top):
            return self._top[offset:end]
        return self._all[offset:end]

    @cached_property
    def _all(self) -> Sequence[Found]:
        seen = {position for position, _ in self._top}
        rest = ((match.index, _below_step(match.score)) for match in self._matches)
        return [*self._top, *(found for found in rest if found[0] not in seen)]


def rank(index: Prepared, query: str) -> Results:
    """Every file that matches; for an empty query all files, by repository and path."""
    words = query.split()
    if not words:
        return Listed(index)
    matches = Matcher.from_patterns(words, casing="ignore").match_list(index.paths)
    by_name = Matcher.from_patterns(words, casing="ignore", max_items=CANDIDATES).match_list(
        index.names
    )
    in_name = {match.index for match in by_name}
    scores = {match.index: match.score for match in matches[:CANDIDATES]}
    _add_missing(index, words, in_name - scores.keys(), scores)
    lowered = [word.lower() for word in words]
    top = [
        (position, _score(index, lowered, position, score, position in in_name))
        for position, score in scores.items()
    ]
    return Ranked(sorted(top, key=lambda found: (-found[1], found[0])), matches)


def _add_missing(
    index: Prepared, words: list[str], missing: set[int], scores: dict[int, int]
) -> None:
    positions = sorted(missing)
    texts = [index.entries[position].text for position in positions]
    for match in Matcher.from_patterns(words, casing="ignore").match_list(texts):
        scores[positions[match.index]] = match.score


def _score(index: Prepared, words: list[str], position: int, matched: int, in_name: bool) -> float:
    text = index.entries[position].text
    lowered = text.lower()
    fits = [fit_of(word, text, lowered) for word in words]
    if min(fits) is Fit.STREWN:
        return (sum(fits) + in_name) * STEP + _below_step(matched)
    name = len(text) - text.rfind("/") - 1
    return (sum(fits) + 1) * STEP + STEP / 2 - 8 * min(name, 400) - min(len(text), 1600)


def _below_step(score: float) -> float:
    return min(score, STEP - 1)
