"""How a terminal's screen becomes strips, kept until their row changes."""

from collections.abc import Callable, Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.terminal.painter import Look, Painter
from quarterdeck.tui.terminal.screen import TerminalScreen


class PaintedTerminal(Widget):
    """Paints `content`. Who derives from it fills that, and tells with `repaint` what changed."""

    COMPONENT_CLASSES = {
        "terminal--selection",
        "terminal--match",
        "terminal--match-here",
        "terminal--cursor",
        "terminal--cursor-idle",
        "terminal--outside",
        "terminal--note",
    }

    def __init__(
        self, *, name: str | None, id: str | None, classes: str | None, disabled: bool
    ) -> None:
        super().__init__(name=name, id=id, classes=classes, disabled=disabled)
        self.content = TerminalScreen()
        self._painter: Painter | None = None
        self._strips: dict[int, Strip] = {}
        self._filters: Sequence[LineFilter] = ()

    # what who derives from it says

    @property
    def has_rows(self) -> bool:
        """Whether there is a screen to show."""
        raise NotImplementedError

    @property
    def cursor_lives(self) -> bool:
        """Whether a cursor is shown at all."""
        raise NotImplementedError

    @property
    def cursor_is_ours(self) -> bool:
        """Whether keys go to it."""
        raise NotImplementedError

    def note_of(self, y: int) -> str:
        """What is said over a line; empty for the line itself."""
        raise NotImplementedError

    def look_changed(self) -> None:
        """The colors are others."""

    # painting

    def theme_changed(self, _: object = None) -> None:
        """The app has another theme."""
        self._painter = None
        self.repaint()

    def notify_style_update(self) -> None:
        """Part of `Widget`: the look is read anew."""
        super().notify_style_update()
        self._painter = None
        self._strips.clear()

    def _look(self) -> Painter:
        if self._painter is None:
            look = Look(
                self.rich_style,
                self._part("terminal--selection"),
                self._part("terminal--cursor"),
                self._part("terminal--cursor-idle"),
                self.get_component_rich_style("terminal--outside"),
                self.get_component_rich_style("terminal--note"),
                self._part("terminal--match"),
                self._part("terminal--match-here"),
            )
            self._filters = self.get_line_filters()
            self._painter = Painter(look, _finisher(self._filters, self.background_colors[1]))
            self.look_changed()
        return self._painter

    def _part(self, name: str) -> Style:
        """A component's colors, mixed into the widget's where they are transparent."""
        styles = self.get_component_styles(name)
        background = self.colors[2] + styles.background
        color = styles.color.rich_color if styles.has_rule("color") else None
        return Style(color=color, bgcolor=background.rich_color)

    def repaint(self, rows: set[int] | None = None) -> None:
        """Rows of the screen are others; None for all."""
        if rows is None:
            self._strips.clear()
            self.refresh()
            return
        rows = {y for y in rows if 0 <= y < self.size.height}
        for y in rows:
            self._strips.pop(y, None)
        if rows:
            self.refresh(*_regions(rows, self.size))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Strips go to the compositor as they are kept, past Textual's own cache of styled lines.

        Most of a frame's cost would be in there. So the view has no border or padding of its own.
        """
        if not self.is_attached:  # a frame may still be due when the pane has left the screen
            return [Strip.blank(crop.width)] * crop.height
        if self.get_line_filters() != self._filters:
            self._painter = None
            self._strips.clear()
        strips = [self.render_line(y) for y in crop.line_range]
        if crop.column_span != (0, self.size.width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """Part of `Widget`: one line, from the cache unless it changed."""
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._strip(y)
        return strip

    def _strip(self, y: int) -> Strip:
        painter, width = self._look(), self.size.width
        if note := self.note_of(y):
            return painter.note(note, width)
        row = self.content.row(y) if self.has_rows else None
        if row is None:
            return painter.outside(width)
        state = self.content.state
        strip = painter.strip(row, state.cols)
        cursor = state.cursor
        if cursor.visible and y + self.content.top == cursor.y and self.cursor_lives:
            strip = painter.with_cursor(strip, cursor, self.cursor_is_ours)
        left = self.content.left
        if left or strip.cell_length > width:
            strip = strip.crop(left, left + width)
        missing = width - strip.cell_length
        return Strip.join([strip, painter.outside(missing)]) if missing > 0 else strip


def _finisher(filters: Sequence[LineFilter], background: Color) -> Callable[[Style], Style]:
    """What the app's filters make of a style. They look at nothing else of a segment."""

    def finish(style: Style) -> Style:
        segments = [Segment(" ", style)]
        for line_filter in filters:
            segments = line_filter.apply(segments, background)
        return segments[0].style or style

    return finish


def _regions(rows: Iterable[int], size: Size) -> list[Region]:
    """Whole lines, neighbors joined."""
    regions: list[Region] = []
    for y in sorted(rows):
        if regions and regions[-1].bottom == y:
            regions[-1] = Region(0, regions[-1].y, size.width, regions[-1].height + 1)
        else:
            regions.append(Region(0, y, size.width, 1))
    return regions
