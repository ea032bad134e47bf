"""One line over a text: what it is, and where the reader is in it."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit, one_line


class TitleLine(Widget):
    """`words` give way to `facts`, which stand at the right."""

    COMPONENT_CLASSES = {"title--facts"}
    DEFAULT_CSS = """
    TitleLine {
        height: 1;
        background: $panel;
        text-style: bold;
        & > .title--facts { color: $text-muted; text-style: not bold; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown = ("", "")

    def show(self, words: str, facts: str = "") -> None:
        """Shows other words."""
        shown = (one_line(words), one_line(facts))
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        words, facts = self._shown
        width = self.size.width
        room = width - 2 - cell_len(facts)
        if room < min(12, cell_len(words)):
            facts, room = "", width - 2
        style = self.rich_style
        aside = style + part_style(self, "title--facts")
        segments = [Segment(f" {fit(words, max(0, room))}", style), Segment(f"{facts} ", aside)]
        return Strip(segments).adjust_cell_length(width, style)
