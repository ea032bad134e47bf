"""The visible part of a transcript.

Which lines of a long list of blocks are visible.

The position of the reader is a block and a line in it, never a line number: heights are estimated
until a block is seen, and a correction above must not move what is being read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from textual.strip import Strip

Measure = Callable[[int], int]
"""Draws the block at an index; returns its exact height in lines."""


class Heights:
    """A list of heights in lines that answers "how many lines before" and "which block at line"."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        sums = [0, *accumulate(self._heights)]
        self._tree = [0] + [sums[i] - sums[i & (i - 1)] for i in range(1, len(sums))]
        self.total = sums[-1]

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._heights)

    def __setitem__(self, index: int, height: int) -> None:
        more = height - self._heights[index]
        if not more:
            return
        self._heights[index] = height
        self.total += more
        at, size = index + 1, len(self._tree)
        while at < size:
            self._tree[at] += more
            at += at & -at

    def append(self, height: int) -> None:
        """Append a block at the end."""
        at = len(self._tree)
        node, below = height, at - 1
        while below > (at & (at - 1)):
            node += self._tree[below]
            below &= below - 1
        self._heights.append(height)
        self._tree.append(node)
        self.total += height

    def before(self, index: int) -> int:
        """Return the number of lines before a block."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index &= index - 1
        return total

    def at(self, line: int) -> tuple[int, int]:
        """Return the block that contains a line, and the line's place in it; the nearest when outside."""
        if not self._heights:
            return 0, 0
        line = max(0, min(line, self.total - 1))
        index, step = 0, 1 << (len(self._tree).bit_length() - 1)
        while step:
            ahead = index + step
            if ahead < len(self._tree) and self._tree[ahead] <= line:
                index = ahead
                line -= self._tree[ahead]
            step >>= 1
        return min(index, len(self._heights) - 1), line


class Viewport:
    """A window of `height` lines over `heights`, its top at line `offset` of block `index`."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self.heights = Heights()
        self.height = 0
        self.index = 0
        self.offset = 0
        self.following = True

    @property
    def y(self) -> int:
        """Lines above the window."""
        return self.heights.before(self.index) + self.offset

    def settle(self) -> None:
        """Measure the visible blocks; keep the window inside the list, and at its end when following."""
        if not len(self.heights):
            self.index = self.offset = 0
            return
        if self.following:
            self._to_end()
            return
        self.index = min(self.index, len(self.heights) - 1)
        self.offset = min(self.offset, max(0, self._exact(self.index) - 1))
        if self._sees_end():
            self._to_end()
            self.following = True

    def move(self, lines: int) -> None:
        """Scroll by lines, exactly: blocks on the way are measured."""
        if not len(self.heights):
            return
        self.following = False
        self.offset += lines
        while self.offset < 0 and self.index > 0:
            self.index -= 1
            self.offset += self._exact(self.index)
        self.offset = max(0, self.offset)
        while self.offset >= self._exact(self.index) and self.index < len(self.heights) - 1:
            self.offset -= self.heights[self.index]
            self.index += 1
        self.settle()

    def jump(self, y: int) -> None:
        """Scroll to a line, by the known heights."""
        self.following = False
        self.index, self.offset = self.heights.at(y)
        self.settle()

    def show(self, index: int, offset: int = 0) -> None:
        """Move a block's line to the top, or as near to it as the end of the list allows."""
        self.following = False
        self.index, self.offset = index, offset
        self.settle()

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield the visible blocks, from the top: index and window row of the first line (may be negative)."""
        row = -self.offset
        for index in range(self.index, len(self.heights)):
            if row >= self.height:
                return
            yield index, row
            row += self.heights[index]

    def locate(self, row: int) -> tuple[int, int] | None:
        """Return the block and its line at a row of the window; None below the last block."""
        index, line = self.index, self.offset + row
        while index < len(self.heights):
            if line < self.heights[index]:
                return index, line
            line -= self.heights[index]
            index += 1
        return None

    def reveal(self, index: int) -> None:
        """Scroll as little as possible to show a block; of one that is too high, its start."""
        if index < self.index or (index == self.index and self.offset > 0):
            self.show(index)
            return
        above = sum(self._exact(i) for i in range(self.index, index)) - self.offset
        hidden = above + self._exact(index) - self.height
        if hidden > 0:
            self.move(min(hidden, above))

    def end(self) -> None:
        """Go to the end and follow it."""
        self.following = True
        self.settle()

    def _exact(self, index: int) -> int:
        height = self._measure(index)
        self.heights[index] = height
        return height

    def _to_end(self) -> None:
        left = self.height
        index = len(self.heights)
        while index > 0 and left > 0:
            index -= 1
            left -= self._exact(index)
        self.index = index
        self.offset = max(0, -left)

    def _sees_end(self) -> bool:
        seen = -self.offset
        for index in range(self.index, len(self.heights)):
            seen += self._exact(index)
            if seen > self.height:
                return False
        return True


class Window:
    """Strips by row. They are cached by their owner, so a row is unchanged if its strip is the same object."""

    def __init__(self) -> None:
        self.strips: list[Strip] = []
        self._drawn: list[Strip] = []
        self._painted: list[Strip | None] = []

    def forget(self) -> None:
        """Forget the strips, which look different now or may not be on the screen."""
        self._drawn = []
        self.strips = []
        self._painted = []

    def show(self, drawn: list[Strip], finish: Callable[[Strip], Strip]) -> None:
        """Show the rows as drawn, each of them put through `finish` once."""
        known = {id(old): strip for old, strip in zip(self._drawn, self.strips, strict=True)}
        self.strips = [known.get(id(strip)) or finish(strip) for strip in drawn]
        self._drawn = drawn

    def take_changes(self) -> Iterator[tuple[int, int]]:
        """Yield the rows that are not on the screen yet, as start and end; they count as painted."""
        before = self._painted
        if len(before) != len(self.strips):
            before = [None] * len(self.strips)
        changed = [y for y, strip in enumerate(self.strips) if before[y] is not strip]
        self._painted = list(self.strips)
        return _stretches(changed)

    def hand_over(self) -> list[Strip]:
        """Return all rows, for a caller that may or may not paint each of them."""
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
