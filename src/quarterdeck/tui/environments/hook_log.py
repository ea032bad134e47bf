"""What a hook prints while it is tried out."""

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.store.environment_hooks import HookRun
from quarterdeck.tui.text import fit


class HookLog(ScrollView, can_focus=True):
    """The lines of a test; it follows the end while the person has not scrolled away."""

    DEFAULT_CSS = """
    HookLog {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        border-top: solid $panel-lighten-2;
        border-title-color: $text-muted;
        &:focus { border-top: solid $border; }
        &.passed { border-title-color: $text-success; }
        &.failed, &.stopped { border-title-color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []

    def show(self, run: HookRun) -> None:
        """Shows what was said so far."""
        follow = self.scroll_offset.y >= self.max_scroll_y
        self._lines = run.lines
        self.virtual_size = Size(self.size.width, len(self._lines))
        if follow:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width, style = self.size.width, self.rich_style
        if line >= len(self._lines):
            return Strip.blank(width, style)
        text = fit(self._lines[line].expandtabs(4).replace(" ", "\u00a0"), width)
        return Strip([Segment(text.replace("\u00a0", " "), style)])
