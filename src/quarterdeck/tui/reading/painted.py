"""The base of views that paint rows of spans, those alone that are seen."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.tui.transcript_view.lines import Line, Role
from quarterdeck.tui.transcript_view.painter import Painter
from quarterdeck.tui.transcript_view.style import COMPONENTS, role_css


class Painted(ScrollView, can_focus=True):
    """Rows of spans in the theme's styles."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*COMPONENTS, "painted--here", "painted--found"}
    DEFAULT_CSS = """
Painted {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    scrollbar-size: 1 1;
}
Painted > .painted--here { background: $block-cursor-blurred-background; }
Painted:focus > .painted--here {
    background: $block-cursor-background;
    color: $block-cursor-foreground;
    text-style: $block-cursor-text-style;
}
Painted > .painted--found { background: $warning; color: $background; }
""" + role_css("Painted")

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Without layout: a growing text must not lay the screen out again."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.painter = Painter(self._role_style)

    def _role_style(self, role: Role) -> Style:
        return self.get_component_rich_style(f"transcript--{role}")

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self.painter.reset()

    def paint_line(self, row: Line, width: int) -> Strip:
        """A row in exactly `width` cells."""
        return self.painter.strip(row, width, 0)

    def show_lines(self, *lines: int) -> None:
        """Paints some lines anew, as far as they are seen."""
        top = self.scroll_offset.y
        self.refresh(*(Region(0, line - top, self.size.width, 1) for line in lines))

    def reveal(self, line: int) -> None:
        """Scrolls as little as possible to see a line."""
        x = self.scroll_offset.x
        self.scroll_to_region(Region(x, line, 1, 1), animate=False, force=True)


def on_top(strip: Strip, left: int, right: int, style: Style) -> Strip:
    """A strip with some of its cells, from and up to, in a style over their own."""
    before, inside, after = strip.crop(0, left), strip.crop(left, right), strip.crop(right)
    chosen = [Segment(words, (own or Style.null()) + style) for words, own, _ in inside]
    return Strip.join([before, Strip(chosen), after])
