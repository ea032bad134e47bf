"""The settings as lines with a cursor; the parts are one list, so that a small window shows them."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.settings.rows import Row
from quarterdeck.tui.text import fit, one_line
from quarterdeck.tui.widgets.placed import Placed

NAME, VALUE = 26, 30


class SettingsList(ScrollView, Placed, can_focus=True):
    """Painted by line."""

    COMPONENT_CLASSES = {"settings--cursor", "settings--head", "settings--dim", "settings--mark"}
    DEFAULT_CSS = """
    SettingsList {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        padding: 0 1;
        & > .settings--head { color: $text-primary; text-style: bold; }
        & > .settings--dim { color: $text-muted; }
        & > .settings--mark { color: $text-warning; }
        & > .settings--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(Where.SETTINGS)]

    cursor: reactive[int] = reactive(0, repaint=False)

    class Clicked(Message):
        """A line was clicked twice."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.SETTINGS

    @property
    def chosen(self) -> Row | None:
        """The line under the cursor."""
        return self._rows[self.cursor] if self._rows else None

    def show(self, rows: list[Row]) -> None:
        """Shows other lines; the cursor stays on what it is about."""
        before = self.chosen
        self._rows = rows
        self.virtual_size = Size(self.size.width, len(rows))
        self.cursor = self._like(before)
        self.refresh()

    def _like(self, before: Row | None) -> int:
        if before is not None:
            for n, row in enumerate(self._rows):
                if (row.part, row.deed, row.about, row.head) == (
                    before.part,
                    before.deed,
                    before.about,
                    before.head,
                ) and (row.about or row.deed or row.name == before.name):
                    return n
        return self._near(min(self.cursor, len(self._rows) - 1), 1)

    def _near(self, at: int, step: int) -> int:
        """The first line from there that is no heading."""
        while 0 <= at < len(self._rows) and self._rows[at].head:
            at += step
        return at if 0 <= at < len(self._rows) else self.cursor

    def action_move(self, by: int) -> None:
        """To another line, over headings."""
        at = max(0, min(self.cursor + by, len(self._rows) - 1))
        self.cursor = self._near(at, 1 if by > 0 else -1)

    def action_edge(self, end: int) -> None:
        """To the first line, or the last."""
        at = 0 if end == 0 else len(self._rows) - 1
        self.cursor = self._near(at, 1 if end == 0 else -1)

    def action_section(self, by: int) -> None:
        """To the first line of another part."""
        starts = [n + 1 for n, row in enumerate(self._rows) if row.head]
        if not starts:
            return
        current = max((n for n, start in enumerate(starts) if start <= self.cursor), default=0)
        self.cursor = starts[(current + by) % len(starts)]

    def watch_cursor(self, before: int, after: int) -> None:
        for line in (before, after):
            self.refresh_line(line - self.scroll_offset.y)
        above = after - 1 if after and self._rows[after - 1 : after][0].head else after
        region = Region(0, above, 1, after - above + 1)
        self.scroll_to_region(region, animate=False, immediate=True, force=True)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows))

    def on_click(self, event: Click) -> None:
        at = event.y + self.scroll_offset.y
        if at < len(self._rows) and not self._rows[at].head:
            self.cursor = at
            if event.chain > 1:
                self.post_message(self.Clicked())

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width  # beside the scrollbar
        at = y + self.scroll_offset.y
        base = self.rich_style
        if at >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[at]
        dim = base + part_style(self, "settings--dim")
        if row.head:
            style = base + part_style(self, "settings--head")
            name = one_line(row.name)
            note = fit(row.note, max(0, width - len(name) - 2))
            return Strip([Segment(name, style), Segment("  ", base), Segment(note, dim)])
        mark = base + part_style(self, "settings--mark")
        if at == self.cursor and self.has_focus:
            base = dim = mark = self.get_component_rich_style("settings--cursor")
        return Strip(_line(row, width, base, dim, mark))


def _line(row: Row, width: int, base: Style, dim: Style, mark: Style) -> list[Segment]:
    sign = Segment(f" {row.mark or ' '} ", mark)
    if not row.value and not row.note:
        return [sign, Segment(fit(row.name, width - 3), base)]
    name, value = (NAME, VALUE) if width >= 100 else (18, 16)
    rest = max(0, width - 3 - name - value)
    return [
        sign,
        Segment(fit(row.name, name - 1) + " ", base),
        Segment(fit(row.value, value - 1) + " ", base),
        Segment(fit(row.note, rest), dim),
    ]
