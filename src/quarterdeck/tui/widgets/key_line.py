"""The bottom line: the keys of what has the focus."""

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.part_style import part_style


class KeyLine(Widget):
    """Keys and what they do, as many as fit."""

    COMPONENT_CLASSES = {"keys--key", "keys--text"}
    DEFAULT_CSS = """
    KeyLine {
        height: 1;
        background: $panel;
        & > .keys--key { color: $text-accent; text-style: bold; }
        & > .keys--text { color: $text-muted; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[tuple[str, str], ...] = ()

    def show(self, keys: tuple[tuple[str, str], ...]) -> None:
        """Shows pairs of a key and what it does, the important ones first."""
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key_style = base + part_style(self, "keys--key")
        text_style = base + self.get_component_rich_style("keys--text")
        width, room = self.size.width, self.size.width
        segments: list[Segment] = []
        for key, text in self._keys:
            needed = len(key) + len(text) + 3
            if needed > room:
                break
            segments += [Segment(f" {key}", key_style), Segment(f" {text} ", text_style)]
            room -= needed
        return Strip(segments).extend_cell_length(width, base)
