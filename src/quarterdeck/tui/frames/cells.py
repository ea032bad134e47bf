"""Cells of a frame.

A compositor that draws only the widgets that are visible in the changed region.

Textual's compositor draws every widget whose container intersects a change, from front to back:
for one row of a terminal that is the terminal and all the containers around it, in full, and the key
line too, and then uses the terminal's row. Here it leaves out what is outside the change, and stops
at the first widget that covers it.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes
from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip

from quarterdeck.tui.frames.sgr import PLAIN, Pen, Pens, pen_of_blank


class Cell(NamedTuple):
    """What one cell shows. A wide character is its cell and, right of it, one whose text is empty.

    `steady`: every terminal has its cursor at the same place after drawing it. Not so after
    combining sequences and pictographs, whose width terminals disagree on.
    """

    text: str
    pen: Pen
    width: int = 1
    steady: bool = True


_MOST_PENS = 4_096
"""Pens whose cells are cached. A picture has thousands, and the next one others."""
_KEPT_STRIPS = 1_000
"""Strips whose cells are cached: scrolling shows them again on other rows."""

UNKNOWN = Cell("\x00", PLAIN)
"""It is unknown what the terminal shows there."""


class _CellsOfPen(dict[str, Cell]):
    """One cell for each character, so that cells compare by identity.

    Spaces that look alike are one cell, whatever the color of the text around them.
    """

    def __init__(self, pen: Pen, blanks: "dict[Pen, Cell]") -> None:
        super().__init__()
        self.pen = pen
        bare = pen_of_blank(pen)
        self._blank = blanks.setdefault(bare, Cell(" ", bare))

    def __missing__(self, text: str) -> Cell:
        if len(self) > 8_192:
            self.clear()
        if text == " ":
            self[text] = self._blank
            return self._blank
        cell = self[text] = Cell(text, self.pen, cell_len(text), _is_steady(text))
        return cell


class CellMaker:
    """Turns strips into lists of cells."""

    def __init__(self, pens: Pens) -> None:
        self._pens = pens
        self._cells: dict[Pen, _CellsOfPen] = {}
        self._blanks: dict[Pen, Cell] = {}
        self._made: dict[int, tuple[Strip, list[Cell]]] = {}

    def cells(self, strip: Strip) -> list[Cell]:
        """Return the cells of a strip, from the left. Not to be changed."""
        # Strips cannot be hashed; the one kept with its cells keeps its id from being reused.
        known = self._made.get(id(strip))
        if known is not None:
            return known[1]
        if len(self._made) >= _KEPT_STRIPS:
            self._made.clear()
        cells = self._make(strip)
        self._made[id(strip)] = (strip, cells)
        return cells

    def _make(self, strip: Strip) -> list[Cell]:
        made: list[Cell] = []
        for text, style, _ in strip:
            pen = self._pens.of(style)
            cells = self._cells.get(pen)
            if cells is None:
                if len(self._cells) >= _MOST_PENS:
                    self._forget()
                cells = self._cells[pen] = _CellsOfPen(pen, self._blanks)
            if text.isascii() and text.isprintable():
                made += map(cells.__getitem__, text)
            else:
                made += map(cells.__getitem__, _graphemes(text))
        return made

    def _forget(self) -> None:
        """Forget all cells: cells created from now on differ from those shown and are sent again."""
        self._cells.clear()
        self._blanks.clear()
        self._pens.forget()


@lru_cache(maxsize=4_096)
def _graphemes(text: str) -> tuple[str, ...]:
    """Return the text of each cell, without control characters."""
    safe = "".join(c for c in text if c >= " " and not "\x7f" <= c <= "\x9f")
    safe = safe.encode("utf-8", "replace").decode()
    cells: list[str] = []
    for start, end, width in split_graphemes(safe)[0]:
        if width:
            cells.append(safe[start:end])
            cells += [""] * (width - 1)
        elif cells:
            lead = -1 if cells[-1] else -2
            cells[lead] += safe[start:end]
    return tuple(cells)


def _is_steady(text: str) -> bool:
    return len(text) <= 1 and text < "\U0001f000"


class FrontCompositor(Compositor):
    """Draws only the visible widgets of the changed region."""

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            if not seen or (crop is not None and not crop.overlaps(seen)):
                continue
            yield region, clip, widget.render_lines(seen.translate(-region.offset))
            if crop is not None and seen.contains_region(crop):
                return
