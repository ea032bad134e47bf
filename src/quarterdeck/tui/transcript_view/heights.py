"""Heights of many blocks, with their sums (a Fenwick tree)."""

from collections.abc import Iterable, Iterator
from itertools import accumulate


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
        """One more block at the end."""
        at = len(self._tree)
        node, below = height, at - 1
        while below > (at & (at - 1)):
            node += self._tree[below]
            below &= below - 1
        self._heights.append(height)
        self._tree.append(node)
        self.total += height

    def before(self, index: int) -> int:
        """Lines before a block."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index &= index - 1
        return total

    def at(self, line: int) -> tuple[int, int]:
        """The block that holds a line, and the line's place in it; the nearest when outside."""
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
