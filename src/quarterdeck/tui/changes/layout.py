"""Items get rows: how wide the parts of a line are, and how many rows an item takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from quarterdeck.tui.changes.model import Kind, Section
from quarterdeck.tui.changes.pieces import fold
from quarterdeck.tui.changes.visible import visible
from quarterdeck.tui.transcript_view.lines import line as whole_line
from quarterdeck.tui.transcript_view.wrap import wrap

BAR = 1
"""Cells left of everything, for the cursor."""
COMMENT_INSET = 4
SPLIT_LEAST = 80
"""Cells below which two sides cannot be read beside each other."""
BOTH_NUMBERS = 76
"""Cells from which a line has its numbers of both sides."""


@dataclass(frozen=True)
class Shape:
    """The parts of a line, in cells. `code` is what its text has; of a pair, on each side."""

    width: int
    split: bool
    digits: int
    both: bool

    @property
    def gutter(self) -> int:
        """Numbers, sign, and the blanks between."""
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


def shape_of(section: Section, width: int, *, split: bool) -> Shape:
    """The shape of a section's lines."""
    last = 0
    if section.change is not None:
        for hunk in section.change.hunks[-1:]:
            last = max(hunk.old_start, hunk.new_start) + len(hunk.lines)
    return Shape(width, split, max(3, len(str(last))), both=not split and width >= BOTH_NUMBERS)


class Placed:
    """A section with its items and the rows that they take."""

    def __init__(self, section: Section, width: int, *, split: bool) -> None:
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
            if item.kind == Kind.LINE:
                text = lines[item.line].text
                # Most lines are as plain as that, and there may be a hundred thousand.
                plain = len(text) <= code and text.isascii() and text.isprintable()
                yield 1 if plain else _rows(text, code)
            elif item.kind == Kind.PAIR:
                both = (lines[at].text for at in (item.line, item.partner) if at >= 0)
                yield max(_rows(text, code) for text in both)
            elif item.comment is not None:
                yield 1 + len(comment_rows(item.comment.text, prose))
            else:
                yield 1


def _rows(text: str, width: int) -> int:
    """How many rows a line takes."""
    shown = visible(text)
    if shown.isascii():
        return max(1, -(-len(shown) // width))
    return len(fold(whole_line(shown), width))


def comment_rows(text: str, width: int) -> list[str]:
    """A comment's text in rows."""
    return [
        "".join(span.text for span in row)
        for part in text.rstrip().split("\n")
        for row in wrap(whole_line(visible(part)), width)
    ]
