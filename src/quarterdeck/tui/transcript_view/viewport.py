"""Which lines of a long list of blocks are seen.

The place of the reader is a block and a line in it, never a line number: heights are estimated
until a block is seen, and a correction above must not move what is being read.
"""

from collections.abc import Callable, Iterator

from quarterdeck.tui.transcript_view.heights import Heights

Measure = Callable[[int], int]
"""Draws the block at an index; its exact height in lines."""


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
        """Measures what is seen; keeps the window inside the list, and at its end when following."""
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
        """Scrolls by lines, exactly: blocks on the way are measured."""
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
        """Scrolls to a line, by the heights as known."""
        self.following = False
        self.index, self.offset = self.heights.at(y)
        self.settle()

    def show(self, index: int, offset: int = 0) -> None:
        """Puts a block's line at the top, or as near to it as the end of the list allows."""
        self.following = False
        self.index, self.offset = index, offset
        self.settle()

    def rows(self) -> Iterator[tuple[int, int]]:
        """The blocks seen, from the top: index and window row of the first line (may be negative)."""
        row = -self.offset
        for index in range(self.index, len(self.heights)):
            if row >= self.height:
                return
            yield index, row
            row += self.heights[index]

    def locate(self, row: int) -> tuple[int, int] | None:
        """The block and its line at a row of the window; None below the last block."""
        index, line = self.index, self.offset + row
        while index < len(self.heights):
            if line < self.heights[index]:
                return index, line
            line -= self.heights[index]
            index += 1
        return None

    def reveal(self, index: int) -> None:
        """Scrolls as little as possible to see a block; of one that is too high, its beginning."""
        if index < self.index or (index == self.index and self.offset > 0):
            self.show(index)
            return
        above = sum(self._exact(i) for i in range(self.index, index)) - self.offset
        hidden = above + self._exact(index) - self.height
        if hidden > 0:
            self.move(min(hidden, above))

    def end(self) -> None:
        """Goes to the end and follows it."""
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
