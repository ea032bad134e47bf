"""All sections below each other: which item is in which row, and where the next one is."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from quarterdeck.tui.changes.layout import SPLIT_LEAST, Placed
from quarterdeck.tui.changes.model import Item, Kind, Section


class Address(NamedTuple):
    """An item: the number of its section, and its own in there."""

    section: int
    item: int


class Document:
    """Sections in a width. Laid out anew when anything of it changes; what did not is kept."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self.placed: list[Placed] = []
        self.tops: list[int] = [0]
        self.width = 0
        self.split = False

    def show(self, sections: Sequence[Section]) -> None:
        """Other sections; files that are the same keep their rows."""
        known = {one.section.key: one for one in self.placed}
        self._sections = list(sections)
        self.placed = [self._place(section, known.get(section.key)) for section in sections]
        self.measure()

    def resize(self, width: int, *, split: bool) -> bool:
        """Another width, or the other way to show it; False when it is as it was."""
        split = split and width >= SPLIT_LEAST
        if (width, split) == (self.width, self.split):
            return False
        self.width, self.split = width, split
        self.placed = [self._place(section, None) for section in self._sections]
        self.measure()
        return True

    def put(self, number: int, section: Section) -> None:
        """One section is another one now; `measure` is to follow."""
        self._sections[number] = section
        self.placed[number] = self._place(section, None)

    def _place(self, section: Section, known: Placed | None) -> Placed:
        if known is not None and _same(known.section, section):
            return known
        return Placed(section, self.width, split=self.split)

    def measure(self) -> None:
        """Finds the rows of the sections again."""
        self.tops = list(accumulate((one.height for one in self.placed), initial=0))

    @property
    def height(self) -> int:
        """Rows of all."""
        return self.tops[-1]

    # places

    def locate(self, row: int) -> tuple[Address, int] | None:
        """The item in a row, and which of its rows it is."""
        if not 0 <= row < self.height:
            return None
        number = bisect_right(self.tops, row) - 1
        placed = self.placed[number]
        inside = row - self.tops[number]
        item = bisect_right(placed.starts, inside) - 1
        return Address(number, item), inside - placed.starts[item]

    def row_of(self, address: Address) -> int:
        """The first row of an item."""
        return self.tops[address.section] + self.placed[address.section].starts[address.item]

    def height_of(self, address: Address) -> int:
        """How many rows it has."""
        starts = self.placed[address.section].starts
        return starts[address.item + 1] - starts[address.item]

    def item(self, address: Address) -> Item:
        """The item itself."""
        return self.placed[address.section].items[address.item]

    def has(self, address: Address) -> bool:
        """Whether there is such an item."""
        return 0 <= address.section < len(self.placed) and 0 <= address.item < len(
            self.placed[address.section].items
        )

    def clamp(self, address: Address) -> Address:
        """The nearest item that there is."""
        if not self.placed:
            return Address(0, 0)
        section = max(0, min(address.section, len(self.placed) - 1))
        last = len(self.placed[section].items) - 1
        return Address(section, max(0, min(address.item, last)))

    # ways

    def walk(self, start: Address, step: int) -> Iterator[Address]:
        """Items behind (or before) one, each once."""
        section, item = start
        while 0 <= section < len(self.placed):
            item += step
            if 0 <= item < len(self.placed[section].items):
                yield Address(section, item)
                continue
            section += step
            if 0 <= section < len(self.placed):
                item = -1 if step > 0 else len(self.placed[section].items)

    def move(self, start: Address, steps: int) -> Address:
        """So many items on, or the last there is."""
        step = 1 if steps > 0 else -1
        left, at = abs(steps), start
        for address in self.walk(start, step):
            if not left:
                break
            at, left = address, left - 1
        return at

    def next_where(
        self, start: Address, step: int, wanted: Callable[[Section, Item], bool]
    ) -> Address | None:
        """The next item of a kind."""
        for address in self.walk(start, step):
            if wanted(self.placed[address.section].section, self.item(address)):
                return address
        return None


def is_file(section: Section, item: Item) -> bool:
    """A file's head."""
    return item.kind == Kind.FILE


def is_hunk(section: Section, item: Item) -> bool:
    """A hunk's head, or the head of a file that shows none."""
    if item.kind == Kind.HUNK:
        return True
    hidden = section.folded or section.change is None or not section.change.hunks
    return item.kind == Kind.FILE and hidden


def _same(one: Section, other: Section) -> bool:
    """Whether both look the same."""
    if one.change is None or other.change is None:
        return False
    return (
        one.folded == other.folded
        and one.hidden == other.hidden
        and not one.comments
        and not other.comments
        and (one.change is other.change or one.change.text == other.change.text)
    )
