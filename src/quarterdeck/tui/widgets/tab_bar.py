"""One line of tabs, which the mouse can choose from."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import one_line

LONGEST = 24
"""Cells of one label."""


@dataclass(frozen=True)
class Tab:
    """`key` names it to whoever listens; `label` may come from anywhere.

    `short` stands for it where not all labels have room.
    """

    key: str
    label: str
    short: str = ""


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
        labels = [f" {_cut(one_line(tab.label))} " for tab in self._tabs]
        over = sum(map(cell_len, labels)) - self.size.width
        for at in reversed(range(len(labels))):
            tab = self._tabs[at]
            if tab.key == self._current:
                labels[at] = f"[{labels[at][1:-1]}]"
            elif over > 0 and tab.short:
                over -= cell_len(labels[at]) - cell_len(tab.short) - 2
                labels[at] = f" {tab.short} "
        return list(zip(self._tabs, labels, strict=True))

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        width = self.size.width
        if self._words:
            words = part_style(self, "tabs--words")
            segments = [Segment(f" {self._words}", base + words)]
        else:
            current = base + part_style(self, "tabs--current")
            segments = [
                Segment(label, current if tab.key == self._current else base)
                for tab, label in self._labels()
            ]
        left = self._left
        return Strip(segments).crop(left, left + width).extend_cell_length(width, base)

    @property
    def _left(self) -> int:
        """The first cell shown: the current tab is in view with all before it that fit."""
        end = 0
        for tab, label in self._labels():
            end += cell_len(label)
            if tab.key == self._current:
                return max(0, end - self.size.width) if not self._words else 0
        return 0

    def on_click(self, event: Click) -> None:
        if self._words:
            return
        at = -self._left
        for tab, label in self._labels():
            at += cell_len(label)
            if event.x < at:
                self.post_message(self.Chosen(self, tab.key))
                return


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
