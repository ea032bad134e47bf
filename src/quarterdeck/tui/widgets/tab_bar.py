"""One line of tabs, which the mouse can choose from."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.text import one_line

LONGEST = 24
"""Cells of one label."""


@dataclass(frozen=True)
class Tab:
    """`key` names it to whoever listens; `label` may come from anywhere."""

    key: str
    label: str


class TabBar(Widget):
    """The tabs, or a sentence in their place."""

    COMPONENT_CLASSES = {"tabs--current", "tabs--words"}
    DEFAULT_CSS = """
    TabBar {
        height: 1;
        color: $text-muted;
        & > .tabs--current { color: $foreground; background: $panel; text-style: bold; }
        & > .tabs--words { color: $text-warning; }
    }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, bar: "TabBar", key: str) -> None:
            super().__init__()
            self.bar = bar
            self.key = key

        @property
        def control(self) -> "TabBar":
            """The bar that it is in."""
            return self.bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tabs: tuple[Tab, ...] = ()
        self._current: str | None = None
        self._words = ""

    def show(self, tabs: Sequence[Tab], current: str | None, words: str = "") -> None:
        """Shows tabs, or `words` when there are any."""
        shown = (tuple(tabs), current, one_line(words))
        if shown != (self._tabs, self._current, self._words):
            self._tabs, self._current, self._words = shown
            self.refresh()

    @property
    def text(self) -> str:
        """What the line says."""
        return self.render_line(0).text.rstrip()

    def _labels(self) -> list[tuple[Tab, str]]:
        shown = [(tab, _cut(one_line(tab.label))) for tab in self._tabs]
        return [
            (tab, f"[{label}]" if tab.key == self._current else f" {label} ")
            for tab, label in shown
        ]

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        width = self.size.width
        if self._words:
            words = self.get_component_rich_style("tabs--words", partial=True)
            segments = [Segment(f" {self._words}", base + words)]
        else:
            current = base + self.get_component_rich_style("tabs--current", partial=True)
            segments = [
                Segment(label, current if tab.key == self._current else base)
                for tab, label in self._labels()
            ]
        return Strip(segments).crop(0, width).extend_cell_length(width, base)

    def on_click(self, event: Click) -> None:
        if self._words:
            return
        at = 0
        for tab, label in self._labels():
            at += cell_len(label)
            if event.x < at:
                self.post_message(self.Chosen(self, tab.key))
                return


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
