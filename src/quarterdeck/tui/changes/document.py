"""Changes as lines of text, and the search in them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from rich.cells import cell_len

from quarterdeck.tui.changes.model import DiffSection, Item, ItemKind, visible
from quarterdeck.tui.kit.spans import Line, Span, spans_in, wrap
from quarterdeck.tui.kit.spans import line as whole_line

WORD = "word"
"""The parts that differ from the replaced line."""
MATCH = "match"
"""Matches of the search."""

Range = tuple[int, int, str]

_LEAST_ALIKE = 0.3
"""Between lines with less in common nothing is highlighted: they are different lines."""


def difference(text: str, other: str) -> Range | None:
    """Return the words of a line that its counterpart does not have."""
    before = _common(text, other)
    rest, other_rest = text[before:], other[before:]
    after = _common(rest[::-1], other_rest[::-1])
    shorter = min(len(text), len(other))
    if not shorter or (before + after) / shorter < _LEAST_ALIKE:
        return None
    begin, end = before, len(text) - after
    other_end = len(other) - after
    if _joined(text[:begin], text[begin:], other[begin:]):
        while begin > 0 and _is_word(text[begin - 1]):
            begin -= 1
    if _joined(text[end:][::-1], text[:end][::-1], other[:other_end][::-1]):
        while end < len(text) and _is_word(text[end]):
            end += 1
    return (begin, end, WORD) if begin < end else None


def _joined(alike: str, *rests: str) -> bool:
    """Return whether the difference starts within a word."""
    return _is_word(alike[-1:]) and any(_is_word(rest[:1]) for rest in rests)


def _is_word(text: str) -> bool:
    return text.isalnum() or text == "_"


def _common(text: str, other: str) -> int:
    """Return the length of their common prefix."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(text), len(other)))


def matches(text: str, wanted: str) -> Iterator[Range]:
    """Yield the matches of a text."""
    for begin, end in spans_in(text, wanted):
        yield begin, end, MATCH


def cut(spans: Line, ranges: Iterable[Range]) -> list[Span]:
    """Return the spans with the highlighted parts as separate spans, named in their `target`."""
    for begin, end, name in ranges:
        spans = tuple(_cut(spans, begin, end, name))
    return list(spans)


def _cut(spans: Line, begin: int, end: int, name: str) -> Iterator[Span]:
    at = 0
    for span in spans:
        text = span.text
        first, last = max(0, begin - at), max(0, min(end - at, len(text)))
        at += len(text)
        if first >= last:
            yield span
            continue
        if first:
            yield span._replace(text=text[:first])
        yield span._replace(text=text[first:last], target=name)
        if last < len(text):
            yield span._replace(text=text[last:])


def fold(spans: Iterable[Span], width: int) -> list[list[Span]]:
    """Return rows of at most a width, cut at the same cells however the text is divided."""
    rows: list[list[Span]] = [[]]
    used = 0
    for span in spans:
        start = 0
        for end, cells in _steps(span.text, width, used):
            if used + cells > width:
                rows.append([])
                used = 0
            rows[-1].append(span._replace(text=span.text[start:end]))
            used += cells
            start = end
    return rows


def _steps(text: str, width: int, used: int) -> Iterator[tuple[int, int]]:
    """End of the pieces of a text that fit in one row each, with their cells."""
    if text.isascii():
        at, size = 0, len(text)
        while at < size:
            step = min(size - at, width - used if used < width else width)
            at += step
            used = used + step if used < width else step
            yield at, step
        return
    start = piece = 0
    for at, character in enumerate(text):
        cells = cell_len(character)
        if used + cells > width:
            if at > start:
                yield at, piece
            start, piece, used = at, 0, 0
        piece += cells
        used += cells
    yield len(text), piece


BAR = 1
"""Cells left of everything, for the cursor."""
COMMENT_INSET = 4
SPLIT_LEAST = 80
"""Cells below which two sides cannot be read side by side."""
BOTH_NUMBERS = 76
"""Cells from which a line has the numbers of both sides."""


@dataclass(frozen=True)
class LineShape:
    """The parts of a line, in cells. `code` is the width of the text; for a pair, of each side."""

    width: int
    split: bool
    digits: int
    both: bool

    @property
    def gutter(self) -> int:
        """Numbers, sign, and the spaces between."""
        return (self.digits + 1) * (2 if self.both else 1) + 2

    @property
    def half(self) -> int:
        """Cells of one side of a pair."""
        return (self.width - BAR - 1) // 2

    @property
    def code(self) -> int:
        room = self.half if self.split else self.width - BAR
        return max(2, room - self.gutter)

    @property
    def prose(self) -> int:
        """Cells of a comment's text."""
        return max(2, self.width - BAR - COMMENT_INSET - 1)


def shape_of(section: DiffSection, width: int, *, split: bool) -> LineShape:
    """Return the shape of a section's lines."""
    last = 0
    if section.change is not None:
        for hunk in section.change.hunks[-1:]:
            last = max(hunk.old_start, hunk.new_start) + len(hunk.lines)
    return LineShape(width, split, max(3, len(str(last))), both=not split and width >= BOTH_NUMBERS)


class PlacedSection:
    """A section with its items and their rows."""

    def __init__(self, section: DiffSection, width: int, *, split: bool) -> None:
        self.section = section
        self.shape = shape_of(section, width, split=split)
        self.items = section.items(split=split)
        self.starts = list(accumulate(self._heights(), initial=0))

    @property
    def height(self) -> int:
        return self.starts[-1]

    def _heights(self) -> Iterator[int]:
        lines, code, prose = self.section.lines, self.shape.code, self.shape.prose
        for item in self.items:
            if item.kind == ItemKind.LINE:
                text = lines[item.line].text
                # Most lines are as plain as this, and there may be a hundred thousand.
                plain = len(text) <= code and text.isascii() and text.isprintable()
                yield 1 if plain else _rows(text, code)
            elif item.kind == ItemKind.PAIR:
                both = (lines[at].text for at in (item.line, item.partner) if at >= 0)
                yield max(_rows(text, code) for text in both)
            elif item.comment is not None:
                yield 1 + len(comment_rows(item.comment.text, prose))
            else:
                yield 1


def _rows(text: str, width: int) -> int:
    """Return how many rows a line takes."""
    shown = visible(text)
    if shown.isascii():
        return max(1, -(-len(shown) // width))
    return len(fold(whole_line(shown), width))


def comment_rows(text: str, width: int) -> list[str]:
    """Return a comment's text as rows."""
    return [
        "".join(span.text for span in row)
        for part in text.rstrip().split("\n")
        for row in wrap(whole_line(visible(part)), width)
    ]


class ItemAddress(NamedTuple):
    """An item: the number of its section, and its index in it."""

    section: int
    item: int


class Document:
    """Sections at a width. Only changed parts are laid out again."""

    def __init__(self) -> None:
        self._sections: list[DiffSection] = []
        self.placed: list[PlacedSection] = []
        self.tops: list[int] = [0]
        self.width = 0
        self.split = False

    def show(self, sections: Sequence[DiffSection]) -> None:
        """Show other sections; unchanged files keep their rows."""
        known = {placed.section.key: placed for placed in self.placed}
        self._sections = list(sections)
        self.placed = [self._place(section, known.get(section.key)) for section in sections]
        self.measure()

    def resize(self, width: int, *, split: bool) -> bool:
        """Set the width and the mode; return False when both are unchanged."""
        split = split and width >= SPLIT_LEAST
        if (width, split) == (self.width, self.split):
            return False
        self.width, self.split = width, split
        self.placed = [self._place(section, None) for section in self._sections]
        self.measure()
        return True

    def put(self, number: int, section: DiffSection) -> None:
        """Replace a section by a newer version; call `measure` afterwards."""
        self._sections[number] = section
        self.placed[number] = self._place(section, None)

    def _place(self, section: DiffSection, known: PlacedSection | None) -> PlacedSection:
        if known is not None and _same(known.section, section):
            return known
        return PlacedSection(section, self.width, split=self.split)

    def measure(self) -> None:
        """Compute the rows of the sections again."""
        self.tops = list(accumulate((placed.height for placed in self.placed), initial=0))

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.tops[-1]

    # places

    def locate(self, row: int) -> tuple[ItemAddress, int] | None:
        """Return the item in a row, and the row's index within it."""
        if not 0 <= row < self.height:
            return None
        number = bisect_right(self.tops, row) - 1
        placed = self.placed[number]
        inside = row - self.tops[number]
        item = bisect_right(placed.starts, inside) - 1
        return ItemAddress(number, item), inside - placed.starts[item]

    def row_of(self, address: ItemAddress) -> int:
        """Return the first row of an item."""
        return self.tops[address.section] + self.placed[address.section].starts[address.item]

    def height_of(self, address: ItemAddress) -> int:
        """Return how many rows it has."""
        starts = self.placed[address.section].starts
        return starts[address.item + 1] - starts[address.item]

    def item(self, address: ItemAddress) -> Item:
        """Return the item itself."""
        return self.placed[address.section].items[address.item]

    def has(self, address: ItemAddress) -> bool:
        """Return whether the item exists."""
        return 0 <= address.section < len(self.placed) and 0 <= address.item < len(
            self.placed[address.section].items
        )

    def clamp(self, address: ItemAddress) -> ItemAddress:
        """Return the nearest existing item."""
        if not self.placed:
            return ItemAddress(0, 0)
        section = max(0, min(address.section, len(self.placed) - 1))
        last = len(self.placed[section].items) - 1
        return ItemAddress(section, max(0, min(address.item, last)))

    # directions

    def walk(self, start: ItemAddress, step: int) -> Iterator[ItemAddress]:
        """Yield the items after (or before) one, each once."""
        section, item = start
        while 0 <= section < len(self.placed):
            item += step
            if 0 <= item < len(self.placed[section].items):
                yield ItemAddress(section, item)
                continue
            section += step
            if 0 <= section < len(self.placed):
                item = -1 if step > 0 else len(self.placed[section].items)

    def move(self, start: ItemAddress, steps: int) -> ItemAddress:
        """Return the address this many items away, or the last one."""
        step = 1 if steps > 0 else -1
        left, at = abs(steps), start
        for address in self.walk(start, step):
            if not left:
                break
            at, left = address, left - 1
        return at

    def next_where(
        self, start: ItemAddress, step: int, wanted: Callable[[DiffSection, Item], bool]
    ) -> ItemAddress | None:
        """Return the next item of a kind."""
        for address in self.walk(start, step):
            if wanted(self.placed[address.section].section, self.item(address)):
                return address
        return None


def is_file(section: DiffSection, item: Item) -> bool:
    """Return whether it is the head of a file."""
    return item.kind == ItemKind.FILE


def is_hunk(section: DiffSection, item: Item) -> bool:
    """Return whether it is the head of a hunk, or of a file without hunks."""
    if item.kind == ItemKind.HUNK:
        return True
    hidden = section.folded or section.change is None or not section.change.hunks
    return item.kind == ItemKind.FILE and hidden


def _same(this: DiffSection, other: DiffSection) -> bool:
    """Return whether both look the same."""
    if this.change is None or other.change is None:
        return False
    return (
        this.folded == other.folded
        and this.hidden == other.hidden
        and not this.comments
        and not other.comments
        and (this.change is other.change or this.change.text == other.change.text)
    )


Match = tuple[int, int]
"""A section, and the index of a line in it; -1 is its head."""


class DocumentSearch:
    """The matches of a text in a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._text = ""
        self._found: list[Match] | None = None

    def restart(self) -> None:
        """Note that the document has changed; the search text is the same."""
        self._found = None

    def search(self, wanted: str) -> int:
        """Return how many lines contain a text."""
        self._text = wanted
        self._found = None
        return len(self._matches())

    def _matches(self) -> list[Match]:
        if self._found is None:
            self._found = self._look() if self._text else []
        return self._found

    def _look(self) -> list[Match]:
        found: list[Match] = []
        wanted = self._text
        for number, placed in enumerate(self._document.placed):
            section = placed.section
            if section.change is None:
                continue
            if spans_in(section.change.path, wanted):
                found.append((number, -1))
            found += [
                (number, index)
                for index, line in enumerate(section.lines)
                if spans_in(line.text, wanted) and spans_in(visible(line.text), wanted)
            ]
        return found

    def next(self, start: ItemAddress, step: int, *, here: bool = False) -> Match | None:
        """Return the next match, wrapping around at the end."""
        matches = self._matches()
        if not matches:
            return None
        at = self._match_at(start)
        if step > 0:
            position = bisect_left(matches, at) if here else bisect_right(matches, at)
        else:
            position = bisect_left(matches, at) - 1
        return matches[position % len(matches)]

    def _match_at(self, address: ItemAddress) -> Match:
        placed = self._document.placed[address.section]
        for item in placed.items[address.item :]:
            if item.kind in {ItemKind.LINE, ItemKind.PAIR}:
                last = max(item.line, item.partner) if item.kind == ItemKind.PAIR else item.line
                return address.section, last
            if item.kind == ItemKind.FILE:
                break
        head = placed.items[address.item].kind == ItemKind.FILE
        return address.section, -1 if head else len(placed.section.lines)

    def address(self, number: int, index: int) -> ItemAddress:
        """Return the item that shows a match."""
        for at, item in enumerate(self._document.placed[number].items):
            shows = item.kind in {ItemKind.LINE, ItemKind.PAIR} and index in (
                item.line,
                item.partner,
            )
            # A changed line's partner has its own item, unless both are in one.
            if shows and (item.kind == ItemKind.PAIR or item.line == index):
                return ItemAddress(number, at)
        return ItemAddress(number, 0)

    def place(self, cursor: ItemAddress) -> tuple[int, int]:
        """Return the number of an item's match, counted from 1, and how many there are."""
        matches = self._matches()
        if not matches or not self._document.has(cursor):
            return 0, len(matches)
        item = self._document.item(cursor)
        own = {item.line, item.partner} if item.kind == ItemKind.PAIR else {item.line}
        if item.kind == ItemKind.FILE:
            own = {-1}
        for index in sorted(own):
            at = bisect_left(matches, (cursor.section, index))
            if at < len(matches) and matches[at] == (cursor.section, index):
                return at + 1, len(matches)
        return 0, len(matches)
