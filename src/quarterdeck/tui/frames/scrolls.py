"""Rows that only moved up or down: found, weighed against drawing them again, and moved.

A scroll region of a terminal is as wide as the screen (margins left and right are not understood
everywhere), so what stands beside the moved text moves too and is drawn again. Whether that is less
is counted, cell by cell, for each frame.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import is_not
from typing import NamedTuple

from quarterdeck.tui.frames.cells import UNKNOWN, Cell

_FEWEST = 4
"""Strips that must have moved alike."""
_COST = 24
"""Bytes of the control sequences, about."""
_ROW_COST = 6
"""Bytes that bring the cursor to a row, about."""

Row = list[Cell]


class Shift(NamedTuple):
    """Rows from `top` up to `bottom` move up by `lines`; down when it is negative."""

    top: int
    bottom: int
    lines: int

    def sequence(self) -> str:
        """What makes the terminal do it. Index and reverse index are as old as scroll regions."""
        inside = f"\x1b[{self.top + 1};{self.bottom}r"
        if self.lines > 0:
            steps = f"\x1b[{self.bottom};1H" + "\x1bD" * self.lines
        else:
            steps = f"\x1b[{self.top + 1};1H" + "\x1bM" * -self.lines
        return f"{inside}{steps}\x1b[r"

    def moved(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the region after it; what came in is unknown."""
        inside = list(rows[self.top : self.bottom])
        fresh = [[UNKNOWN] * len(rows[0])] * abs(self.lines)
        if self.lines > 0:
            return [*inside[self.lines :], *fresh]
        return [*fresh, *inside[: self.lines]]


def find_shift(moves: Sequence[tuple[int, int]]) -> Shift | None:
    """The commonest of the moves, given as (row before, row now)."""
    votes = Counter(before - now for before, now in moves)
    votes.pop(0, None)
    if not votes:
        return None
    lines, count = votes.most_common(1)[0]
    if count < _FEWEST:
        return None
    rows = [row for before, now in moves if before - now == lines for row in (before, now)]
    top, bottom = min(rows), max(rows) + 1
    return Shift(top, bottom, lines) if bottom - top > abs(lines) else None


def pays(shift: Shift, shown: Sequence[Row], wanted: Mapping[int, Row]) -> bool:
    """Less is sent when the rows are moved first."""
    region = range(shift.top, shift.bottom)
    drawn = sum(_cost(shown[y], wanted[y]) for y in region if y in wanted)
    rows = zip(shift.moved(shown), region, strict=True)
    return _COST + sum(_cost(row, wanted.get(y, shown[y])) for row, y in rows) < drawn


def _cost(shown: Row, wanted: Row) -> int:
    changed = sum(map(is_not, shown, wanted))
    return changed + _ROW_COST if changed else 0
