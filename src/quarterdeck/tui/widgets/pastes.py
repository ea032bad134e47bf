"""Long pastes stand in a composer as one token each; the text itself is kept beside it.

pasted text --add--> "[paste 1: 75,000 lines, 1.0 MB]" --written--> pasted text
"""

import re
from collections.abc import Iterator

LONG_LINES = 40
LONG_TEXT = 4_000
"""A paste of more lines, or more characters, becomes a token."""
HUGE_LINES = 2_000
HUGE_TEXT = 100_000
"""The same for a whole text that was not pasted: an area as long is slow to write in."""
KEPT = 20
"""Texts that are kept though their token is gone: it may come back by undoing, or unsent."""

_TOKEN = re.compile(r"\[paste \d+: [^\[\]\n]*\]")


def is_long(text: str) -> bool:
    """Whether a pasted text becomes a token."""
    return len(text) > LONG_TEXT or text.count("\n") >= LONG_LINES


def is_huge(text: str) -> bool:
    """Whether any text becomes one."""
    return len(text) > HUGE_TEXT or text.count("\n") >= HUGE_LINES


class Pastes:
    """The texts of one composer's tokens."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def add(self, text: str) -> str:
        """A token for a text."""
        known = next((token for token, one in self._texts.items() if one == text), None)
        if known is not None:
            return known
        self._count += 1
        token = f"[paste {self._count}: {_lines(text)}, {_size(text)}]"
        self._texts[token] = text
        return token

    def text_of(self, token: str) -> str | None:
        """What a token stands for."""
        return self._texts.get(token)

    def written(self, shown: str) -> str:
        """A text with all of its tokens opened: what the person means."""
        return _TOKEN.sub(lambda found: self._texts.get(found[0], found[0]), shown)

    def shown(self, written: str) -> str:
        """The other way round, for a text that was shown before; a huge one becomes a token."""
        for token, text in self._texts.items():
            written = written.replace(text, token)
        return self.add(written) if is_huge(written) else written

    def forget(self, shown: str) -> None:
        """Only the latest are kept of those that the text does not have."""
        unused = [token for token in self._texts if token not in shown]
        for token in unused[: max(0, len(unused) - KEPT)]:
            del self._texts[token]

    def places(self, line: str) -> Iterator[tuple[int, int, str]]:
        """The tokens of a line: where they begin and end."""
        for found in _TOKEN.finditer(line):
            if found[0] in self._texts:
                yield found.start(), found.end(), found[0]


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n"))
    return "1 line" if count == 1 else f"{count:,} lines"


def _size(text: str) -> str:
    size = len(text.encode(errors="replace"))
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 999_950 else f"{size / 1_000_000:.1f} MB"
