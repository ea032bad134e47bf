"""Read a query, and show where a text matches it."""

import re
from dataclasses import dataclass

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

_WORD = re.compile(r"[^\W_]+")
"""What both full-text indexes count as a word."""
_GAP = re.compile(r"\s+")
_TERM = re.compile(r'"([^"]*)"?|([^"\s]+)')
WORD = 500
"""Characters of a word in PostgreSQL's index, which takes 2,046 bytes. A query is shorter."""
BEFORE, AFTER = 40, 120
"""Characters of an excerpt before and after the start of the first match."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(text.lower())


def vector_of(text: str) -> str:
    """Return the words of a text and their places as text of a `tsvector`."""
    return " ".join(f"{word[:WORD]}:{at}" for at, word in enumerate(words_of(text), 1))


@dataclass(frozen=True)
class SearchQuery:
    """A query: all of `phrases` must be found, each a sequence of words, written as in `terms`.

    The last word of the last phrase may be the beginning of a longer one when `open_ended`.
    """

    terms: list[str]
    phrases: list[list[str]]
    open_ended: bool

    @classmethod
    def read(cls, text: str) -> "SearchQuery":
        """Read words, phrases in quotation marks, and names such as `core.py`, which are phrases.

        Raises:
            ApiError: INVALID_REQUEST when it has no word.
        """
        found = list(_TERM.finditer(text))
        terms = [term for one in found if words_of(term := one[1] or one[2] or "")]
        if not terms:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "There is nothing to search for. Give a word of two or more characters.",
                "q",
            )
        open_ended = found[-1][2] is not None and not text[-1].isspace()
        return cls(terms, [words_of(term) for term in terms], open_ended)

    def for_sqlite(self) -> str:
        """Return the query in the language of FTS5, which splits a phrase as it splits a text."""
        text = " ".join(f'"{term}"' for term in self.terms)
        return text + "*" if self.open_ended else text

    def for_postgresql(self) -> str:
        """Return the query as text of a `tsquery`."""
        phrases = ["<->".join(f"'{word}'" for word in words) for words in self.phrases]
        text = " & ".join(f"({phrase})" for phrase in phrases)
        return f"{text.removesuffix(')')}:*)" if self.open_ended else text

    def excerpt(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """Return the part of a text around the first match, on one line, and the matches in it."""
        pattern = self._pattern()
        first = pattern.search(text)
        at = first.start() if first else 0
        begin = max(0, at - BEFORE)
        part = text[begin : at + AFTER]
        if begin and (gap := _GAP.search(part, 0, at - begin)):  # begin with a whole word
            part = part[gap.end() :]
        line = " ".join(part.split())
        return line, [match.span() for match in pattern.finditer(line)]

    def _pattern(self) -> re.Pattern[str]:
        phrases = [r"[\W_]+".join(map(re.escape, words)) for words in self.phrases]
        ends = [r"(?![^\W_])"] * len(phrases)
        if self.open_ended:
            ends[-1] = r"[^\W_]*"
        either = "|".join(phrase + end for phrase, end in zip(phrases, ends, strict=True))
        return re.compile(rf"(?<![^\W_])(?:{either})", re.IGNORECASE)
