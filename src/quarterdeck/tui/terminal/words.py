"""Words in rows of cells, for going through a screen word by word."""

from collections.abc import Callable, Iterator

Place = tuple[int, int]
"""Column and row."""
ROWS_SEARCHED = 500
"""A word may be so many empty rows away; then the reader stays."""


class Words:
    """Rows of one width; `row` returns one character for each cell."""

    def __init__(self, row: Callable[[int], str], cols: int, total: int) -> None:
        self._row = row
        self._cols = cols
        self._total = total

    def next(self, place: Place) -> Place:
        """The begin of the next word."""
        kind = self._kind(place)
        for here in self._walk(place, 1):
            now = self._kind(here)
            if now and (now != kind or here[0] == 0):
                return here
            kind = now
        return place

    def end(self, place: Place) -> Place:
        """The last character of this word, or of the next when it is there."""
        last, found = place, False
        for here in self._walk(place, 1):
            if found and self._kind(here) != self._kind(last):
                return last
            found, last = bool(self._kind(here)), here
        return last if found else place

    def previous(self, place: Place) -> Place:
        """The begin of this word, or of the one before when it is there."""
        last, found = place, False
        for here in self._walk(place, -1):
            if found and (self._kind(here) != self._kind(last) or last[0] == 0):
                return last
            found, last = bool(self._kind(here)), here
        return last if found else place

    def _kind(self, place: Place) -> int:
        """0 for a blank, 1 for a letter, 2 for a sign."""
        x, y = place
        text = self._row(y)
        character = text[x] if x < len(text) else " "
        if character in " \0":
            return int(character == "\0" and x > 0 and self._kind((x - 1, y)))
        return 1 if character.isalnum() or character == "_" else 2

    def _walk(self, place: Place, step: int) -> Iterator[Place]:
        x, y = place
        last = y + step * ROWS_SEARCHED
        while 0 <= y < self._total and y != last:
            x += step
            if not 0 <= x < self._cols:
                y += step
                x = 0 if step > 0 else self._cols - 1
            if 0 <= y < self._total:
                yield x, y
