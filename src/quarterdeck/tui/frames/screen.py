"""Writes the differences between two frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip

from quarterdeck.tui.frames.cells import PLAIN, UNKNOWN, Cell, CellMaker, Pen, change, pen_of_blank
from quarterdeck.tui.frames.graphics import Drawing, Pictures, SixelPicture
from quarterdeck.tui.frames.layout import Shift, find_shift, pays

_GAP = 5
"""Unchanged cells drawn again between two changes: a cursor movement is as long."""
_LONG = 12
"""Blank cells in a row that are erased, not written: the two control sequences are as long."""
_MANY = 6
"""Strips that must differ before it is worth checking whether they moved."""


class PlacedStrip(NamedTuple):
    """A strip that starts at a row and column."""

    y: int
    x: int
    strip: Strip


class ShownScreen:
    """The cells that the terminal shows.

    Rows are compared strip by strip first: Textual hands out the same strip objects for what did
    not change.
    """

    def __init__(self, width: int, height: int, maker: CellMaker, *, erases: bool = False) -> None:
        """`erases`: cells that the terminal erases get the background of the pen."""
        self.width = width
        self.height = height
        self._erases = erases
        self._maker = maker
        self._rows: list[list[Cell]] = [[UNKNOWN] * width for _ in range(height)]
        self._strips: list[dict[int, Strip]] = [{} for _ in range(height)]
        self._cursor: tuple[int, int] | None = None

    def draw(
        self, strips: Iterable[PlacedStrip], cursor: tuple[int, int], *, scrolls: bool = False
    ) -> str:
        """Return what to write so that the strips are shown and the cursor is at (column, row).

        Rows come in order. Empty when nothing has changed. `scrolls`: rows may be moved
        before they are corrected, which only a terminal that shows complete frames can hide.
        """
        pictures = self._maker.pictures
        drawn = pictures if pictures is not None and pictures.are_drawn else None
        hand = _Hand(self.width, self._cursor, drawn, erases=self._erases)
        wanted, moves = self._wanted(strips)
        if scrolls and moves and (shift := self._shift(moves, wanted)):
            self._scroll(shift, wanted, hand)
        for y, cells in wanted.items():
            shown = self._rows[y]
            self._rows[y] = cells
            for start, end in runs(shown, cells):
                hand.write(cells, start, end, y)
        written = hand.finish(cursor)
        self._cursor = cursor
        return written

    def _wanted(
        self, strips: Iterable[PlacedStrip]
    ) -> tuple[dict[int, list[Cell]], list[tuple[int, int]]]:
        """Return the rows with the strips placed in them, where they are not there already.

        Also return the rows where strips were before, and are now.
        """
        wanted: dict[int, list[Cell]] = {}
        fresh: list[PlacedStrip] = []
        for y, row_strips in groupby(strips, _row_of):
            if y >= self.height:
                break
            known = self._strips[y]
            # A window that has just shrunk may still receive the wider layout.
            inside = (placed for placed in row_strips if placed.x < self.width)
            fresh += (placed for placed in inside if known.get(placed.x) is not placed.strip)
        moves = self._moves(fresh) if len(fresh) >= _MANY else []
        for y, x, strip in fresh:
            cells = wanted.get(y)
            if cells is None:
                cells = wanted[y] = self._rows[y].copy()
            _place(cells, x, self._maker.cells(strip)[: self.width - x])
            _cover(self._strips[y], x, strip)
        return wanted, moves

    def _moves(self, fresh: Sequence[PlacedStrip]) -> list[tuple[int, int]]:
        before = {
            (x, id(strip)): y for y, known in enumerate(self._strips) for x, strip in known.items()
        }
        found = ((before.get((x, id(strip))), y) for y, x, strip in fresh)
        return [(old, new) for old, new in found if old is not None]

    def _shift(
        self, moves: Sequence[tuple[int, int]], wanted: Mapping[int, list[Cell]]
    ) -> Shift | None:
        shift = find_shift(moves)
        if shift is None or not pays(shift, self._rows, wanted):
            return None
        region = range(shift.top, shift.bottom)
        if any(UNKNOWN in wanted.get(y, self._rows[y]) for y in region):
            return None
        pictures = self._maker.pictures
        if pictures is not None and any(
            map(pictures.is_drawn_in, map(self._rows.__getitem__, region))
        ):
            return None
        return shift

    def _scroll(self, shift: Shift, wanted: dict[int, list[Cell]], hand: "_Hand") -> None:
        """Move the rows; all of them are compared with the target afterwards."""
        for y in range(shift.top, shift.bottom):
            wanted.setdefault(y, self._rows[y])
        self._rows[shift.top : shift.bottom] = shift.moved(self._rows)
        hand.scroll(shift)


def _row_of(placed: PlacedStrip) -> int:
    return placed.y


def runs(shown: Sequence[Cell], wanted: Sequence[Cell]) -> Iterator[tuple[int, int]]:
    """Yield the stretches to draw again: from, up to. Short gaps are joined, wide characters kept whole."""
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


def _stretches(cells: Sequence[Cell], start: int, end: int) -> Iterator[tuple[int, int, Cell]]:
    """Yield long stretches of one blank cell: from, up to, and the cell."""
    x = start
    while x < end:
        cell = cells[x]
        begin, x = x, x + 1
        if cell.text != " " or cell.pen.attributes or cell.pen.link:
            continue
        while x < end and cells[x] is cell:
            x += 1
        if x - begin >= _LONG:
            yield begin, x, cell


_BLANK = Cell(" ", PLAIN)


def _parts(
    cells: Sequence[Cell], start: int, end: int, pictures: Pictures | None
) -> Iterator[tuple[int, int, SixelPicture, int]]:
    """Yield stretches of one picture: from, up to, the picture, and the number of its first cell there."""
    x = start
    while pictures is not None and x < end:
        part = pictures.part(cells[x])
        begin, x = x, x + 1
        if part is None:
            continue
        while x < end and pictures.part(cells[x]) == (part[0], part[1] + x - begin):
            x += 1
        yield begin, x, *part


class _Hand:
    """Writes runs of cells; tracks pen and cursor between them."""

    def __init__(
        self,
        width: int,
        cursor: tuple[int, int] | None,
        pictures: Pictures | None,
        *,
        erases: bool,
    ) -> None:
        """`pictures`: those whose cells are drawn after the text, if there are any."""
        self._width = width
        self._pictures = pictures
        self._drawing = Drawing()
        self._cursor = cursor
        self._erases = erases
        self._pen: Pen = PLAIN
        self._out: list[str] = []

    def write(self, cells: Sequence[Cell], start: int, end: int, y: int) -> None:
        """Draw the cells of a row from `start` up to `end`."""
        for at, upto, picture, index in _parts(cells, start, end, self._pictures):
            self._write_text(cells, start, at, y)
            self._erase(_BLANK, at, upto, y)
            self._drawing.add(picture, index, upto - at, at, y)
            start = upto
        self._write_text(cells, start, end, y)

    def _write_text(self, cells: Sequence[Cell], start: int, end: int, y: int) -> None:
        for at, upto, erased in _stretches(cells, start, end) if self._erases else ():
            self._draw(cells, start, at, y)
            self._erase(erased, at, upto, y)
            start = upto
        self._draw(cells, start, end, y)

    def _draw(self, cells: Sequence[Cell], start: int, end: int, y: int) -> None:
        if start == end:
            return
        self._go(start, y)
        out = self._out
        pen = self._pen
        for x in range(start, end):
            cell = cells[x]
            if not cell.text:
                continue
            if cell.pen is not pen and not (cell.text == " " and pen_of_blank(pen) == cell.pen):
                out.append(change(pen, cell.pen))
                pen = cell.pen
            out.append(cell.text)
            if not cell.steady:
                out.append(f"\x1b[{x + cell.width + 1}G")
        self._pen = pen
        # In the last column a terminal may or may not have wrapped.
        self._cursor = (end, y) if end < self._width else None

    def _erase(self, cell: Cell, start: int, end: int, y: int) -> None:
        """Restore the initial cursor position."""
        self._go(start, y)
        if pen_of_blank(self._pen) != cell.pen:
            self._out.append(change(self._pen, cell.pen))
            self._pen = cell.pen
        self._out.append("\x1b[K" if end == self._width else f"\x1b[{end - start}X")

    def scroll(self, shift: Shift) -> None:
        """Move rows. Must come before any text: new rows take the pen's background."""
        self._out.append(shift.sequence())
        self._cursor = None

    def finish(self, cursor: tuple[int, int]) -> str:
        """Return everything written, with the pen reset and the cursor at its place."""
        if self._pen is not PLAIN:
            self._out.append(change(self._pen, PLAIN))
        if drawn := self._drawing.written():
            self._out.append(drawn)
            self._cursor = None
        self._go(*cursor)
        return "".join(self._out)

    def _go(self, x: int, y: int) -> None:
        if self._cursor == (x, y):
            return
        on_row = self._cursor is not None and self._cursor[1] == y
        self._out.append(f"\x1b[{x + 1}G" if on_row else f"\x1b[{y + 1};{x + 1}H")
        self._cursor = (x, y)


Update = LayoutUpdate | ChopsUpdate


def placed_strips(update: Update) -> Iterator[PlacedStrip]:
    """Return the strips of an update, row by row, from left to right."""
    match update:
        case LayoutUpdate():
            return _layout(update)
        case ChopsUpdate():
            return _chops(update)


def _layout(update: LayoutUpdate) -> Iterator[PlacedStrip]:
    for y, strips in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in strips:
            # Nothing is drawn where no widget is.
            if strip is not None:  # pyright: ignore[reportUnnecessaryComparison]
                yield PlacedStrip(y, x, strip)
                x += strip.cell_length


def _chops(update: ChopsUpdate) -> Iterator[PlacedStrip]:
    for y, left, right in update.spans:
        chops = update.chops[y].items()
        for end, (x, strip) in zip(update.chop_ends[y], chops, strict=False):
            if strip is None or x >= right or end <= left:
                continue
            whole = x >= left and end <= right
            yield PlacedStrip(y, x, strip if whole else strip.crop(0, min(end, right) - x))
