"""The bottom line: the keys of the current place."""

from collections.abc import Iterator

from rich.segment import Segment
from textual.events import Click, Key
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.actions.keys import key_name
from quarterdeck.tui.themes import part_style


class KeyLine(Widget):
    """Keys and their labels, as many as fit. A click on one is equivalent to the key."""

    ALLOW_SELECT = False
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

    def on_click(self, event: Click) -> None:
        """Press the key under the mouse."""
        end = 0
        for key, text in self._fitting():
            end += _room(key, text)
            if event.x < end:
                name = key_name(key)
                self.app.post_message(Key(name, key if len(key) == 1 else None))
                return

    def show(self, keys: tuple[tuple[str, str], ...]) -> None:
        """Show pairs of a key and its label, the important ones first."""
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key_style = base + part_style(self, "keys--key")
        text_style = base + self.get_component_rich_style("keys--text")
        segments: list[Segment] = []
        for key, text in self._fitting():
            segments += [Segment(f" {key}", key_style), Segment(f" {text} ", text_style)]
        return Strip(segments).extend_cell_length(self.size.width, base)

    def _fitting(self) -> Iterator[tuple[str, str]]:
        """Yield those that fit."""
        room = self.size.width
        for key, text in self._keys:
            room -= _room(key, text)
            if room < 0:
                return
            yield key, text


def _room(key: str, text: str) -> int:
    """Return the width of a key with its label."""
    return len(key) + len(text) + 3
