"""From rows of the emulator to strips of Textual."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from quarterdeck.tui.terminal.core import (
    Attribute,
    CellStyle,
    Color,
    Cursor,
    CursorShape,
    Row,
    Underline,
)

_STYLES_KEPT = 16_384


@dataclass(frozen=True, slots=True)
class Look:
    """The theme's part of how a terminal looks."""

    base: Style
    selection: Style
    cursor: Style
    cursor_idle: Style
    outside: Style
    note: Style
    match: Style
    match_here: Style


def _color(color: Color) -> RichColor | None:
    match color:
        case None:
            return None
        case int():
            return RichColor.from_ansi(color)
        case (r, g, b):
            return RichColor.from_rgb(r, g, b)


class Painter:
    """Makes strips in one look. A program's own colors go over those of the theme.

    `finish` is what the app does to every style at last (no colors, colors of the palette as the
    theme has them); done to styles, which are few, and not to strips.
    """

    def __init__(self, look: Look, finish: Callable[[Style], Style] = lambda style: style) -> None:
        self.look = look
        self._finish = finish
        self._blank = finish(look.base)
        self._outside = finish(look.outside)
        self._note = finish(look.note)
        self._styles: dict[CellStyle, Style] = {}
        self._marks = (
            (Attribute.MATCH_HERE, look.match_here),
            (Attribute.SELECTED, look.selection),
            (Attribute.MATCH, look.match),
        )

    def strip(self, row: Row, width: int) -> Strip:
        """A row in `width` cells, the rest blank."""
        segments = [Segment(text, self.style(style)) for text, _, style in row]
        filled = sum([cells for _, cells, _ in row])
        if filled < width:
            segments.append(Segment(" " * (width - filled), self._blank))
        return Strip(segments, max(filled, width))

    def style(self, cell: CellStyle) -> Style:
        """A cell's look in Rich's terms."""
        found = self._styles.get(cell)
        if found is None:
            if len(self._styles) >= _STYLES_KEPT:
                self._styles.clear()
            found = self._styles[cell] = self._finish(self._make(cell))
        return found

    def _make(self, cell: CellStyle) -> Style:
        fg, bg, attributes, underline, _ = cell
        style = self.look.base + Style(
            color=_color(fg),
            bgcolor=_color(bg),
            bold=bool(attributes & Attribute.BOLD) or None,
            dim=bool(attributes & Attribute.FAINT) or None,
            italic=bool(attributes & Attribute.ITALIC) or None,
            reverse=bool(attributes & Attribute.INVERSE) or None,
            conceal=bool(attributes & Attribute.INVISIBLE) or None,
            strike=bool(attributes & Attribute.STRIKE) or None,
            overline=bool(attributes & Attribute.OVERLINE) or None,
            underline=(underline not in (Underline.NONE, Underline.DOUBLE)) or None,
            underline2=(underline == Underline.DOUBLE) or None,
        )
        for attribute, look in self._marks:
            if attributes & attribute:
                return style + look
        return style

    def with_cursor(self, strip: Strip, cursor: Cursor, focused: bool) -> Strip:
        """The strip of the cursor's row with the cursor drawn in it."""
        width = strip.cell_length
        if not 0 <= cursor.x < width:
            return strip
        segment = next(iter(strip.crop(cursor.x, cursor.x + 2)), None)
        text, style = (segment.text, segment.style) if segment else (" ", None)
        # A run is one grapheme, or characters each with cells of their own.
        if cell_len(text) != cell_len(text[:1]):
            text = text[:1]
        cells = max(1, cell_len(text))
        shown = Segment(text, self._cursor_style(style or self._blank, cursor, focused))
        return Strip.join(
            [
                strip.crop(0, cursor.x),
                Strip([shown], cells),
                strip.crop(cursor.x + cells, width),
            ]
        )

    def _cursor_style(self, under: Style, cursor: Cursor, focused: bool) -> Style:
        if not focused:
            return self._finish(under + self.look.cursor_idle)
        if cursor.shape == CursorShape.UNDERLINE:
            return under + Style(underline=True, bold=True)
        return self._finish(under + self.look.cursor)

    def note(self, text: str, width: int) -> Strip:
        """One line of our own, over the program's."""
        return Strip([Segment(set_cell_size(text, width), self._note)], width)

    def outside(self, width: int) -> Strip:
        """A row beyond the program's screen."""
        return Strip([Segment(" " * width, self._outside)], width)
