"""Fuzzy matching: all letters of the query, in order, preferably at the starts of words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

FIRST, WORD, NEXT = 8, 6, 4
"""Bonus of a letter at the text's start, at a word's start, and right after the previous match."""
GAP = 1
"""Penalty of each skipped letter, up to `WORST_GAP`."""
WORST_GAP = 4
NEAR = 2
"""Letters that may be skipped within a word; beyond that only starts of words match."""


@dataclass(frozen=True)
class FuzzyMatch:
    """`places` are the positions of the letters in the text."""

    score: int
    places: tuple[int, ...]


def fit(query: str, text: str) -> FuzzyMatch | None:
    """Return how the query matches, or None. Spaces separate words that all must match."""
    words = query.lower().split()
    found = [_fit_word(word, text.lower()) for word in words]
    fits = [match for match in found if match is not None]
    if len(fits) < len(words):
        return None
    places = sorted({place for match in fits for place in match.places})
    return FuzzyMatch(sum(match.score for match in fits), tuple(places))


def _fit_word(word: str, text: str) -> FuzzyMatch | None:
    at = text.find(word)
    if at >= 0:
        # A contiguous match is the intended one, at a word's start more than within one.
        starts = [n for n in _starts(text) if text.startswith(word, n)]
        at = starts[0] if starts else at
        places = tuple(range(at, at + len(word)))
        return FuzzyMatch(_score(places, text), places)
    return _scattered(word, text)


def _scattered(word: str, text: str) -> FuzzyMatch | None:
    """Return the best of the matches that start at each place of the first letter."""
    best: FuzzyMatch | None = None
    start = text.find(word[0])
    while start >= 0:
        places = _from(start, word, text)
        score = _score(places, text) if places else 0
        if places and (best is None or score > best.score):
            best = FuzzyMatch(score, places)
        start = text.find(word[0], start + 1)
    return best


def _from(start: int, word: str, text: str) -> tuple[int, ...] | None:
    """Return the next letters, each near the previous one or at the start of a word."""
    places = [start]
    for letter in word[1:]:
        near = text.find(letter, places[-1] + 1, places[-1] + 2 + NEAR)
        far = (n for n in _starts(text) if n > places[-1] and text[n] == letter)
        place = near if near >= 0 else next(far, -1)
        if place < 0:
            return None
        places.append(place)
    return tuple(places)


def _score(places: tuple[int, ...], text: str) -> int:
    score = 0
    for n, place in enumerate(places):
        if place == 0:
            score += FIRST
        elif not text[place - 1].isalnum():
            score += WORD
        if n:
            gap = place - places[n - 1] - 1
            score += NEXT if gap == 0 else -min(gap * GAP, WORST_GAP)
    return score


def _starts(text: str) -> list[int]:
    return [n for n in range(len(text)) if n == 0 or not text[n - 1].isalnum()]


def ranked(query: str, items: Sequence[T], text: Callable[[T], str]) -> list[tuple[T, FuzzyMatch]]:
    """Return the matching texts, best first; equal ones in their order, shorter texts first."""
    found = [(item, one) for item in items if (one := fit(query, text(item))) is not None]
    if query.split():
        found.sort(key=lambda pair: (-pair[1].score, len(text(pair[0]))))
    return found
