"""Cells of a frame, and their styles as sequences of the terminal.

`FrontCompositor` is a compositor that draws only the widgets that are visible in the changed region.

Textual's compositor draws every widget whose container intersects a change, from front to back:
for one row of a terminal that is the terminal and all the containers around it, in full, and the key
line too, and then uses the terminal's row. Here it leaves out what is outside the change, and stops
at the first widget that covers it.
"""

from bisect import bisect
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, split_graphemes
from rich.color import Color, ColorSystem, ColorType
from rich.style import Style
from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip

from quarterdeck.transcript.text import MOST_JOINED, replace_hostile

if TYPE_CHECKING:
    from quarterdeck.tui.frames.graphics import Pictures

_CUBE = (0, 95, 135, 175, 215, 255)
_GRAYS = range(8, 239, 10)
_FIRST_OF_CUBE, _FIRST_GRAY = 16, 232


def shown_in(color: Color, system: ColorSystem) -> Color:
    """Return the color that a terminal of a color system shows for a color.

    Rich rounds each channel into the color cube, whose darkest step above black is 95 of 255: a dark
    bluish gray becomes navy. The ramp of grays beside the cube has finer steps, so the nearer one of the
    two is used. The first sixteen are not: they are the user's.
    """
    if system is ColorSystem.EIGHT_BIT and color.triplet is not None:
        return Color(color.name, ColorType.EIGHT_BIT, number=nearest(*color.triplet))
    return color.downgrade(system)


def nearest(red: int, green: int, blue: int) -> int:
    """Return the number, 16 to 255, of the color that is nearest to one of 8 bits a channel."""
    steps = [_nearest_step(_CUBE, channel) for channel in (red, green, blue)]
    gray = _nearest_step(_GRAYS, (red + green + blue) / 3)
    of_cube = _distance((red, green, blue), [_CUBE[step] for step in steps])
    if _distance((red, green, blue), [_GRAYS[gray]] * 3) < of_cube:
        return _FIRST_GRAY + gray
    return _FIRST_OF_CUBE + 36 * steps[0] + 6 * steps[1] + steps[2]


def _nearest_step(steps: Sequence[int], channel: float) -> int:
    above = bisect(steps, channel)
    sides = range(max(above - 1, 0), min(above + 1, len(steps)))
    return min(sides, key=lambda step: abs(steps[step] - channel))


def _distance(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


_MOST = 4_096
"""Styles cached. Text selection creates any number of styles that look alike."""


_ATTRIBUTES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "blink2": "6",
    "reverse": "7",
    "conceal": "8",
    "strike": "9",
    "underline2": "21",
    "frame": "51",
    "encircle": "52",
    "overline": "53",
}


class Pen(NamedTuple):
    """Codes of attributes, foreground and background, and the link's address."""

    attributes: str = ""
    foreground: str = ""
    background: str = ""
    link: str = ""


PLAIN = Pen()
MARKED = "51;52"
"""Attributes of the pen of characters that stand for cells of a picture (`graphics`)."""

_SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})
"""Attributes that are visible on a cell without a character."""


class Pens:
    """The pen of each style, for one color system."""

    def __init__(self, color_system: ColorSystem) -> None:
        self._color_system = color_system
        self._by_style: dict[Style, Pen] = {}
        self._pens: dict[Pen, Pen] = {PLAIN: PLAIN}

    def of(self, style: Style | None) -> Pen:
        """Return the one pen that draws a style."""
        if style is None:
            return PLAIN
        pen = self._by_style.get(style)
        if pen is None:
            if len(self._by_style) >= _MOST:
                self._by_style.clear()
            fresh = _pen(style, self._color_system)
            pen = self._by_style[style] = self._pens.setdefault(fresh, fresh)
        return pen

    def forget(self) -> None:
        """Clear the cache."""
        self._by_style.clear()
        self._pens.clear()
        self._pens[PLAIN] = PLAIN


@lru_cache(maxsize=_MOST)
def pen_of_blank(pen: Pen) -> Pen:
    """Return the shortest pen that draws the same blank: usually its background alone."""
    if pen.link or not _SEEN_ON_BLANKS.isdisjoint(pen.attributes.split(";")):
        return pen
    return Pen(background=pen.background)


def change(before: Pen, after: Pen) -> str:
    """Return the control sequences that turn one pen into another."""
    codes = _codes(before, after)
    sgr = f"\x1b[{codes}m" if codes is not None else ""
    return sgr + _link(after.link) if before.link != after.link else sgr


def _codes(before: Pen, after: Pen) -> str | None:
    if before[:3] == after[:3]:
        return None
    if after[:3] == PLAIN[:3]:
        return ""
    if before.attributes != after.attributes and before.attributes:
        codes = ["0", after.attributes, after.foreground, after.background]
        return ";".join(code for code in codes if code)
    codes: list[str] = []
    if before.attributes != after.attributes:
        codes.append(after.attributes)
    if before.foreground != after.foreground:
        codes.append(after.foreground or "39")
    if before.background != after.background:
        codes.append(after.background or "49")
    return ";".join(codes)


def _link(address: str) -> str:
    if not address:
        return "\x1b]8;;\x1b\\"
    # The same address gets the same id, so that a link wrapped over two rows is one link.
    return f"\x1b]8;id={hash(address) & 0xFFFFFF:x};{address}\x1b\\"


def _pen(style: Style, color_system: ColorSystem) -> Pen:
    attributes = ";".join(code for name, code in _ATTRIBUTES.items() if getattr(style, name))
    foreground = background = ""
    if style.color is not None:
        foreground = ";".join(shown_in(style.color, color_system).get_ansi_codes())
    if style.bgcolor is not None:
        background = ";".join(shown_in(style.bgcolor, color_system).get_ansi_codes(False))
    return Pen(
        attributes,
        "" if foreground == "39" else foreground,
        "" if background == "49" else background,
        _address(style.link),
    )


def _address(link: str | None) -> str:
    """Return a link that cannot end its own control sequence."""
    return "".join(c for c in link or "" if "\x20" < c < "\x7f")


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

    def __init__(self, pens: Pens, pictures: "Pictures | None" = None) -> None:
        self._pens = pens
        self.pictures = pictures
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
        drawn: list[Cell] = []
        for text, style, _ in strip:
            pen = self._pens.of(style)
            if pen.attributes == MARKED and self.pictures is not None:
                drawn += self.pictures.cells(text)
                continue
            cells = self._cells.get(pen)
            if cells is None:
                if len(self._cells) >= _MOST_PENS:
                    self._forget()
                cells = self._cells[pen] = _CellsOfPen(pen, self._blanks)
            if text.isascii() and text.isprintable():
                drawn += map(cells.__getitem__, text)
            else:
                drawn += map(cells.__getitem__, _graphemes(text))
        return drawn

    def _forget(self) -> None:
        """Forget all cells: cells created from now on differ from those shown and are sent again."""
        self._cells.clear()
        self._blanks.clear()
        self._pens.forget()


@lru_cache(maxsize=4_096)
def _graphemes(text: str) -> tuple[str, ...]:
    """Return the text of each cell, without anything that commands the terminal."""
    safe = replace_hostile(text, cell_len)
    cells: list[str] = []
    for start, end, width in split_graphemes(safe)[0]:
        if width:
            cells.append(_thin(safe[start:end], width))
            cells += [""] * (width - 1)
        elif cells:
            lead = -1 if cells[-1] else -2
            cells[lead] = _thin(cells[lead] + safe[start:end], 1 if lead == -1 else 2)
    return tuple(cells)


def _thin(grapheme: str, width: int) -> str:
    """Return what is drawn into one cell, without most of what many marks add to it."""
    if len(grapheme) <= 1 + MOST_JOINED:
        return grapheme
    thinned = grapheme[: 1 + MOST_JOINED].rstrip("\u200d")
    return thinned if cell_len(thinned) == width else grapheme[0].ljust(width)


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
