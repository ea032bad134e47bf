"""What the terminal shows, and the shortest way to what it should show."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from textual.strip import Strip

from quarterdeck.tui.frames.cells import UNKNOWN, Cell, CellMaker
from quarterdeck.tui.frames.pens import PLAIN, Pen, change

_GAP = 5
"""Unchanged cells drawn again between two changes: a cursor movement is as long."""


class Placed(NamedTuple):
    """A strip that begins at a row and column."""

    y: int
    x: int
    strip: Strip


class ShownScreen:
    """The cells that the terminal shows.

    Rows are compared strip by strip first: Textual hands out the same strip objects for what did
    not change.
    """

    def __init__(self, width: int, height: int, maker: CellMaker) -> None:
        self.width = width
        self.height = height
        self._maker = maker
        self._rows: list[list[Cell]] = [[UNKNOWN] * width for _ in range(height)]
        self._strips: list[dict[int, Strip]] = [{} for _ in range(height)]
        self._cursor: tuple[int, int] | None = None

    def draw(self, strips: Iterable[Placed], cursor: tuple[int, int]) -> str:
        """What to write so that the strips are shown and the cursor is at (column, row).

        Rows come in order. Empty when the terminal shows just that.
        """
        hand = _Hand(self.width, self._cursor)
        for y, row_strips in groupby(strips, _row_of):
            if y >= self.height:
                break
            cells = self._wanted(y, row_strips)
            if cells is None:
                continue
            shown = self._rows[y]
            self._rows[y] = cells
            for start, end in runs(shown, cells):
                hand.write(cells, start, end, y)
        written = hand.finish(cursor)
        self._cursor = cursor
        return written

    def _wanted(self, y: int, strips: Iterable[Placed]) -> list[Cell] | None:
        """The row with the strips placed in it; None when they all are there already."""
        known = self._strips[y]
        cells: list[Cell] | None = None
        for _, x, strip in strips:
            # A window that has just shrunk may still be told of the wider layout.
            if x >= self.width or known.get(x) is strip:
                continue
            if cells is None:
                cells = self._rows[y].copy()
            _place(cells, x, self._maker.cells(strip)[: self.width - x])
            _cover(known, x, strip)
        return cells


def _row_of(placed: Placed) -> int:
    return placed.y


def runs(shown: Sequence[Cell], wanted: Sequence[Cell]) -> Iterator[tuple[int, int]]:
    """The stretches to draw again: from, up to. Short gaps are joined, wide characters kept whole."""
    if shown == wanted:
        return
    changed = [x for x, (a, b) in enumerate(zip(shown, wanted, strict=True)) if a is not b != a]
    start = end = changed[0]
    for x in changed:
        if x - end > _GAP or UNKNOWN in wanted[end:x]:
            yield _whole(wanted, start, end)
            start = x
        end = x + 1
    yield _whole(wanted, start, end)


def _whole(cells: Sequence[Cell], start: int, end: int) -> tuple[int, int]:
    while start > 0 and not cells[start].text:
        start -= 1
    while end < len(cells) and not cells[end].text:
        end += 1
    return start, end


def _place(row: list[Cell], x: int, cells: list[Cell]) -> None:
    end = x + len(cells)
    row[x:end] = cells
    # Half of a wide character cannot be shown; terminals blank it.
    if cells and x > 0 and cells[0].text and _is_cut(row[x - 1], row[x]):
        row[x - 1] = Cell(" ", row[x - 1].pen)
    if cells and end < len(row) and not row[end].text and not _is_wide(row[end - 1]):
        row[end] = Cell(" ", row[end].pen)


def _is_cut(lead: Cell, right: Cell) -> bool:
    return _is_wide(lead) and bool(right.text)


def _is_wide(cell: Cell) -> bool:
    return cell.width > 1


def _cover(known: dict[int, Strip], x: int, strip: Strip) -> None:
    end = x + strip.cell_length
    covered = [at for at, old in known.items() if at < end and at + old.cell_length > x]
    for at in covered:
        del known[at]
    known[x] = strip


class _Hand:
    """Writes runs of cells; remembers pen and cursor between them."""

    def __init__(self, width: int, cursor: tuple[int, int] | None) -> None:
        self._width = width
        self._cursor = cursor
        self._pen: Pen = PLAIN
        self._out: list[str] = []

    def write(self, cells: Sequence[Cell], start: int, end: int, y: int) -> None:
        """Draws the cells of a row from `start` up to `end`."""
        self._go(start, y)
        out = self._out
        pen = self._pen
        for x in range(start, end):
            cell = cells[x]
            if not cell.text:
                continue
            if cell.pen is not pen:
                out.append(change(pen, cell.pen))
                pen = cell.pen
            out.append(cell.text)
            if not cell.steady:
                out.append(f"\x1b[{x + cell.width + 1}G")
        self._pen = pen
        # In the last column a terminal may or may not have gone on.
        self._cursor = (end, y) if end < self._width else None

    def finish(self, cursor: tuple[int, int]) -> str:
        """Everything written, the pen put down, the cursor where it belongs."""
        if self._pen is not PLAIN:
            self._out.append(change(self._pen, PLAIN))
        self._go(*cursor)
        return "".join(self._out)

    def _go(self, x: int, y: int) -> None:
        if self._cursor == (x, y):
            return
        on_row = self._cursor is not None and self._cursor[1] == y
        self._out.append(f"\x1b[{x + 1}G" if on_row else f"\x1b[{y + 1};{x + 1}H")
        self._cursor = (x, y)
