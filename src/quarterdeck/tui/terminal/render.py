"""A terminal's screen in the cockpit: its rows, and the strips that they become in a theme."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as TextualColor
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.terminal.channel import FrameDelta
from quarterdeck.tui.terminal.core import (
    Attribute,
    CellStyle,
    Color,
    CursorPosition,
    CursorShape,
    Row,
    Scrollback,
    State,
    TerminalMode,
    Underline,
)


class TerminalScreen:
    """Rows and state. The widget may be smaller than the program's screen: it shows a part."""

    def __init__(self) -> None:
        self.state = State(
            80, 24, CursorPosition(visible=False), TerminalMode.NONE, Scrollback(0, 0, 0), "", 0
        )
        self.left = 0
        """First column in view."""
        self.top = 0
        """First row in view."""
        self._rows: dict[int, Row] = {}

    def row(self, y: int) -> Row | None:
        """Return a row in view, counted from the widget's top; None beyond the program's screen."""
        place = y + self.top
        return self._rows.get(place, ()) if place < self.state.rows else None

    @property
    def cursor(self) -> CursorPosition:
        """The cursor in the widget's coordinates."""
        cursor = self.state.cursor
        return cursor._replace(x=cursor.x - self.left, y=cursor.y - self.top)

    def apply(self, frame: FrameDelta, width: int, height: int) -> set[int] | None:
        """Apply a frame; return the rows of the widget that changed, None for all of them."""
        before = self.cursor
        resized = (frame.state.cols, frame.state.rows) != (self.state.cols, self.state.rows)
        self.state = frame.state
        self._rows.update(frame.rows)
        if resized:
            self._rows = {y: row for y, row in self._rows.items() if y < frame.state.rows}
        if self.follow(width, height) or resized:
            return None
        changed = {y - self.top for y, _ in frame.rows}
        if before != self.cursor:
            changed |= {before.y, self.cursor.y}
        return {y for y in changed if 0 <= y < height}

    def follow(self, width: int, height: int) -> bool:
        """Move the part in view to include the cursor; return whether it moved."""
        cursor, state = self.state.cursor, self.state
        left = _nearest(self.left, cursor.x, width, state.cols, cursor.visible)
        top = _nearest(self.top, cursor.y, height, state.rows, cursor.visible)
        moved = (left, top) != (self.left, self.top)
        self.left, self.top = left, top
        return moved


def _nearest(start: int, cursor: int, room: int, size: int, follow: bool) -> int:
    if follow:
        start = min(max(start, cursor - room + 1), cursor)
    return max(0, min(start, size - room))


_STYLES_KEPT = 16_384


@dataclass(frozen=True, slots=True)
class TerminalTheme:
    """The theme's part of a terminal's look."""

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


class TerminalPainter:
    """Makes strips in one look. A program's own colors override those of the theme.

    `finish` applies the app's filters to a style (no colors, colors of the palette as the
    theme has them); applied to styles, which are few, and not to strips.
    """

    def __init__(
        self, look: TerminalTheme, finish: Callable[[Style], Style] = lambda style: style
    ) -> None:
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
        """Return a row in `width` cells, the rest blank."""
        segments = [Segment(text, self.style(style)) for text, _, style in row]
        filled = sum([cells for _, cells, _ in row])
        if filled < width:
            segments.append(Segment(" " * (width - filled), self._blank))
        return Strip(segments, max(filled, width))

    def style(self, cell: CellStyle) -> Style:
        """Return a cell's style in Rich's terms."""
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

    def with_cursor(self, strip: Strip, cursor: CursorPosition, focused: bool) -> Strip:
        """Return the strip of the cursor's row with the cursor drawn in it."""
        width = strip.cell_length
        if not 0 <= cursor.x < width:
            return strip
        segment = next(iter(strip.crop(cursor.x, cursor.x + 2)), None)
        text, style = (segment.text, segment.style) if segment else (" ", None)
        # A run is one grapheme, or characters with separate cells.
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

    def _cursor_style(self, under: Style, cursor: CursorPosition, focused: bool) -> Style:
        if not focused:
            return self._finish(under + self.look.cursor_idle)
        if cursor.shape == CursorShape.UNDERLINE:
            return under + Style(underline=True, bold=True)
        return self._finish(under + self.look.cursor)

    def note(self, text: str, width: int) -> Strip:
        """Return one line of the cockpit, over the program's."""
        return Strip([Segment(set_cell_size(text, width), self._note)], width)

    def outside(self, width: int) -> Strip:
        """Return a row beyond the program's screen."""
        return Strip([Segment(" " * width, self._outside)], width)


class Overlay(NamedTuple):
    """The state of a view besides the rows of the program."""

    has_rows: bool
    """Whether there is a screen to show."""
    cursor_focused: bool | None
    """Whether keys go to the cursor; None when no cursor is shown."""
    first_line: str
    """Shown over the first line; empty for the line itself."""
    last_line: str


class ScreenRenderer:
    """Renders `content` in a widget, whose owner reports changes with `repaint`.

    `look_changed` is called when the colors of the theme are read.
    """

    def __init__(
        self, widget: Widget, content: TerminalScreen, look_changed: Callable[[], None]
    ) -> None:
        self._widget = widget
        self._content = content
        self._look_changed = look_changed
        self._painter: TerminalPainter | None = None
        self._strips: dict[int, Strip] = {}
        self._filters: Sequence[LineFilter] = ()

    def forget_look(self) -> None:
        """Read the colors of the theme again before the next line."""
        self._painter = None
        self._strips.clear()

    def repaint(self, rows: set[int] | None = None) -> None:
        """Render rows again; None for all."""
        widget = self._widget
        if rows is None:
            self._strips.clear()
            widget.refresh()
            return
        rows = {y for y in rows if 0 <= y < widget.size.height}
        for y in rows:
            self._strips.pop(y, None)
        if rows:
            widget.refresh(*_regions(rows, widget.size))

    def lines(self, crop: Region, overlay: Overlay) -> list[Strip]:
        """Return the cached lines of a region."""
        if self._widget.get_line_filters() != self._filters:
            self.forget_look()
        strips = [self.line(y, overlay) for y in crop.line_range]
        if crop.column_span != (0, self._widget.size.width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def line(self, y: int, overlay: Overlay) -> Strip:
        """Return one line, from the cache unless it changed."""
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._strip(y, overlay)
        return strip

    def _look(self) -> TerminalPainter:
        if self._painter is None:
            widget = self._widget
            look = TerminalTheme(
                widget.rich_style,
                self._part("terminal--selection"),
                self._part("terminal--cursor"),
                self._part("terminal--cursor-idle"),
                widget.get_component_rich_style("terminal--outside"),
                widget.get_component_rich_style("terminal--note"),
                self._part("terminal--match"),
                self._part("terminal--match-here"),
            )
            self._filters = widget.get_line_filters()
            self._painter = TerminalPainter(
                look, _finisher(self._filters, widget.background_colors[1])
            )
            self._look_changed()
        return self._painter

    def _part(self, name: str) -> Style:
        """Return a component's colors, mixed into the widget's where they are transparent."""
        styles = self._widget.get_component_styles(name)
        background = self._widget.colors[2] + styles.background
        color = styles.color.rich_color if styles.has_rule("color") else None
        return Style(color=color, bgcolor=background.rich_color)

    def _strip(self, y: int, overlay: Overlay) -> Strip:
        painter, size, content = self._look(), self._widget.size, self._content
        note = overlay.first_line if y == 0 else ""
        if y and y == size.height - 1:
            note = overlay.last_line
        if note:
            return painter.note(note, size.width)
        row = content.row(y) if overlay.has_rows else None
        if row is None:
            return painter.outside(size.width)
        state, focused = content.state, overlay.cursor_focused
        strip = painter.strip(row, state.cols)
        cursor = state.cursor
        if focused is not None and cursor.visible and y + content.top == cursor.y:
            strip = painter.with_cursor(strip, cursor, focused)
        left = content.left
        if left or strip.cell_length > size.width:
            strip = strip.crop(left, left + size.width)
        missing = size.width - strip.cell_length
        return Strip.join([strip, painter.outside(missing)]) if missing > 0 else strip


def _finisher(filters: Sequence[LineFilter], background: TextualColor) -> Callable[[Style], Style]:
    """Return a style after the app's filters. They use nothing else of a segment."""

    def finish(style: Style) -> Style:
        segments = [Segment(" ", style)]
        for line_filter in filters:
            segments = line_filter.apply(segments, background)
        return segments[0].style or style

    return finish


def _regions(rows: Iterable[int], size: Size) -> list[Region]:
    """Return regions of whole lines, neighbors joined."""
    regions: list[Region] = []
    for y in sorted(rows):
        if regions and regions[-1].bottom == y:
            regions[-1] = Region(0, regions[-1].y, size.width, regions[-1].height + 1)
        else:
            regions.append(Region(0, y, size.width, 1))
    return regions
