"""The rows of the window as they were last handed over, so that only changed ones are drawn again."""

from collections.abc import Callable, Iterator, Sequence

from textual.strip import Strip


class Window:
    """Strips by row. Strips are kept by those who draw them, so a row is the same if its strip is."""

    def __init__(self) -> None:
        self.strips: list[Strip] = []
        self._drawn: list[Strip] = []
        self._painted: list[Strip | None] = []

    def forget(self) -> None:
        """Strips look different now, or nobody knows what is on the screen."""
        self._drawn = []
        self.strips = []
        self._painted = []

    def show(self, drawn: list[Strip], finish: Callable[[Strip], Strip]) -> None:
        """The rows as drawn, each of them put through `finish` once."""
        known = {id(old): strip for old, strip in zip(self._drawn, self.strips, strict=True)}
        self.strips = [known.get(id(strip)) or finish(strip) for strip in drawn]
        self._drawn = drawn

    def take_changes(self) -> Iterator[tuple[int, int]]:
        """Stretches of rows that are not on the screen yet: from, up to. They count as painted."""
        before = self._painted
        if len(before) != len(self.strips):
            before = [None] * len(self.strips)
        changed = [y for y, strip in enumerate(self.strips) if before[y] is not strip]
        self._painted = list(self.strips)
        return _stretches(changed)

    def hand_over(self) -> list[Strip]:
        """All rows, for somebody who may or may not paint each of them."""
        if len(self._painted) == len(self.strips):
            pairs = zip(self._painted, self.strips, strict=True)
            self._painted = [old if old is new else None for old, new in pairs]
        return self.strips


def _stretches(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = end = -1
    for y in rows:
        if y != end:
            if end > start:
                yield start, end
            start = y
        end = y + 1
    if end > start:
        yield start, end
