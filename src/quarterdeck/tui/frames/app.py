"""The differ: writes the differences between two frames, as a part of the app."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final, NamedTuple

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, RenderableType
from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.driver import Driver
from textual.screen import Screen
from textual.strip import Strip

from quarterdeck.tui.frames.cells import (
    PLAIN,
    UNKNOWN,
    Cell,
    CellMaker,
    Pen,
    Pens,
    change,
    pen_of_blank,
)
from quarterdeck.tui.frames.graphics import Drawing, Pictures, SixelPicture
from quarterdeck.tui.frames.layout import Shift, find_shift, pays
from quarterdeck.tui.frames.pace import Pacing
from quarterdeck.tui.textual_ext.driver import OutletDriver, is_known

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


# Rule sets are put into a set for each widget that is styled, hundreds at a time; Textual's own hash is
# the same but written in Python.
RuleSet.__hash__ = object.__hash__


class KeptStylesheet(Stylesheet):
    """Caches all parsed sources, for each set of variables.

    Textual caches 64 parsed sources, and the cockpit has more: each widget class is one. Beyond that
    number, every dialog that adds a new class would parse all of them again.
    """

    _of_variables: ClassVar[dict[frozenset[tuple[str, str]], dict[Any, list[RuleSet]]]] = {}
    _parsed: dict[Any, list[RuleSet]]

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._choose(variables or {})

    def set_variables(self, variables: dict[str, str]) -> None:
        super().set_variables(variables)
        self._choose(variables)

    def reparse(self) -> None:
        """Parse again here; the base parses with a stylesheet that has parsed nothing yet."""
        self.parse()

    def _choose(self, variables: dict[str, str]) -> None:
        self._parsed = self._of_variables.setdefault(frozenset(variables.items()), {})

    def _parse_rules(
        self,
        css: str,
        read_from: tuple[str, str],
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        key = (css, read_from, is_default_rules, tie_breaker, scope)
        if key not in self._parsed:
            self._parsed[key] = super()._parse_rules(*key)
        return self._parsed[key]


SWITCH: Final = "QD_FRAMES"
"""Environment variable: `off` leaves Textual's output as it is."""


def is_possible() -> bool:
    """Return whether this version of Textual is supported and the differ is not disabled."""
    return is_known() and os.environ.get(SWITCH, "") != "off"


def erases_in_color(environment: Mapping[str, str]) -> bool:
    """Return whether erased cells get the current background: not in GNU screen by default."""
    return not environment.get("TERM", "").startswith("screen") or "TMUX" in environment


class DiffedFrames(App[Any]):
    """Mixin to put before `App`; sends only changed cells."""

    _shown: ShownScreen | None = None
    _cell_maker: CellMaker | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._diffs = is_possible()
        self.pacing = Pacing()
        self.pictures = Pictures()
        if is_known():
            self.stylesheet = KeptStylesheet(variables=self.get_css_variables())

    def forget_frame(self) -> None:
        """Note that the terminal may show anything; the next frame is sent in full."""
        self._shown = None

    def action_redraw(self) -> None:
        """Draw the whole screen again, after something else wrote on the terminal."""
        self.forget_frame()
        self.pictures.lost()
        self.screen.refresh()

    @property
    def draws_cells(self) -> bool:
        """Whether frames go through the differ to a terminal, so that they can have pictures."""
        driver = self._driver
        return self._diffs and driver is not None and not self.is_headless and not driver.is_inline

    def _build_driver(
        self, headless: bool, inline: bool, mouse: bool, size: tuple[int, int] | None
    ) -> Driver:
        driver = super()._build_driver(headless, inline, mouse, size)
        start = driver.start_application_mode

        def start_afresh() -> None:
            self.forget_frame()
            start()
            if isinstance(driver, OutletDriver) and self._diffs:
                with self._context():  # also after a suspension, which ends in a signal's handler
                    self.pacing.begin(driver)
            self.pictures.lost()

        # Entering the terminal, at first and after each suspension, means an unknown screen.
        driver.start_application_mode = start_afresh  # pyright: ignore[reportAttributeAccessIssue]
        return driver

    async def on_event(self, event: events.Event) -> None:
        """Redraw after a resize, even to the same size: the terminal may show anything after it."""
        if isinstance(event, events.Resize) and self._diffs:
            self.forget_frame()
            if self._screen_stack:
                self.screen.refresh()
        await super().on_event(event)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if not self._diffs or renderable is None or self._batch_count:
            super()._display(screen, renderable)
            return
        driver = self._driver
        if driver is None or not self.draws_cells:
            super()._display(screen, renderable)
            return
        if not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            self.forget_frame()
            super()._display(screen, renderable)
            return
        if self._running and not self._closed:
            self._send(driver, renderable)
        self.post_display_hook()

    def _send(self, driver: Driver, update: Update) -> None:
        cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
        self._previous_cursor_position = cursor
        written = self._shown_screen().draw(
            placed_strips(update), (cursor.x, cursor.y), scrolls=self._sync_available
        )
        if not written:
            return
        if self._sync_available:
            written = f"{SYNC_START}{written}{SYNC_END}"
        driver.write(self.pacing.frame(written))
        driver.flush()

    def _shown_screen(self) -> ShownScreen:
        width, height = self.size
        shown = self._shown
        if shown is None or (shown.width, shown.height) != (width, height):
            shown = self._shown = ShownScreen(
                width, height, self._maker(), erases=erases_in_color(os.environ)
            )
        return shown

    def _maker(self) -> CellMaker:
        if self._cell_maker is None:
            system = COLOR_SYSTEMS.get(self.console.color_system or "", ColorSystem.TRUECOLOR)
            self._cell_maker = CellMaker(Pens(system), self.pictures)
        return self._cell_maker
