"""How well a few letters fit a text: all of them, in their order, best at the beginnings of words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

FIRST, WORD, NEXT = 8, 6, 4
"""What a letter is worth more at the text's beginning, at a word's, and right behind the one before."""
GAP = 1
"""What each letter that is left out costs, up to `WORST_GAP`."""
WORST_GAP = 4
NEAR = 2
"""Letters that may be left out within a word; further on only words begin."""


@dataclass(frozen=True)
class Fit:
    """`places` are the positions of the letters in the text."""

    score: int
    places: tuple[int, ...]


def fit(query: str, text: str) -> Fit | None:
    """How the query fits, None when it does not. Blanks in it part words that all must fit."""
    words = query.lower().split()
    found = [_fit_word(word, text.lower()) for word in words]
    fits = [one for one in found if one is not None]
    if len(fits) < len(words):
        return None
    places = sorted({place for one in fits for place in one.places})
    return Fit(sum(one.score for one in fits), tuple(places))


def _fit_word(word: str, text: str) -> Fit | None:
    at = text.find(word)
    if at >= 0:
        # Together is what was meant, at a word's beginning more than within one.
        starts = [n for n in _starts(text) if text.startswith(word, n)]
        at = starts[0] if starts else at
        places = tuple(range(at, at + len(word)))
        return Fit(_score(places, text), places)
    return _scattered(word, text)


def _scattered(word: str, text: str) -> Fit | None:
    """The best of the ways that begin at each place of the first letter."""
    best: Fit | None = None
    start = text.find(word[0])
    while start >= 0:
        places = _from(start, word, text)
        score = _score(places, text) if places else 0
        if places and (best is None or score > best.score):
            best = Fit(score, places)
        start = text.find(word[0], start + 1)
    return best


def _from(start: int, word: str, text: str) -> tuple[int, ...] | None:
    """The next letters, each near the one before or at the beginning of a word."""
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


def ranked(query: str, items: Sequence[T], text: Callable[[T], str]) -> list[tuple[T, Fit]]:
    """Those that fit, the best first; equal ones stay in their order, shorter texts before longer."""
    found = [(item, one) for item in items if (one := fit(query, text(item))) is not None]
    if query.split():
        found.sort(key=lambda pair: (-pair[1].score, len(text(pair[0]))))
    return found
