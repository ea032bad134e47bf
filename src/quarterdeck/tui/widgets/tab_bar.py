"""Tabs and links to pages."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import ACTIONS, Action, KeyContext, shown_key
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import part_style

LONGEST = 24
"""Width of one label."""


class Tab(NamedTuple):
    """`key` identifies it to listeners; `label` may come from anywhere.

    `short` is shown where not all labels fit. One that `needs_you` has the color of that; the sign for it
    is in its labels.
    """

    key: str
    label: str
    short: str = ""
    needs_you: bool = False


class TabBar(Widget):
    """The tabs, or a sentence in their place."""

    COMPONENT_CLASSES = {"tabs--current", "tabs--words", "tabs--needs-you"}
    DEFAULT_CSS = """
    TabBar {
        height: 1;
        color: $text-muted;
        & > .tabs--current { color: $foreground; background: $panel; text-style: bold; }
        & > .tabs--words { color: $text-warning; }
        & > .tabs--needs-you { color: $needs-you; }
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
        """Show tabs, or `words` when there are any."""
        shown = (tuple(tabs), current, one_line(words))
        if shown != (self._tabs, self._current, self._words):
            self._tabs, self._current, self._words = shown
            self.refresh()

    @property
    def text(self) -> str:
        """The text of the line."""
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
            needs_you = self.get_component_rich_style("tabs--needs-you", partial=True)
            segments = [
                Segment(
                    label,
                    (current if tab.key == self._current else base)
                    + (needs_you if tab.needs_you else Style.null()),
                )
                for tab, label in self._labels()
            ]
        left = self._left
        return Strip(segments).crop(left, left + width).extend_cell_length(width, base)

    @property
    def _left(self) -> int:
        """The first cell shown: the current tab is in view with as many as possible before it."""
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


class Switcher(ContentSwitcher):
    """Textual's, for contents that are created while somebody may be leaving."""

    async def bring(self, content: Widget, *, show: bool = True) -> bool:
        """Add content; False when it or all was removed before or while it was being created."""
        if not self.is_attached:
            return False
        with self.app.batch_update():
            await self.add_content(content)
            if content.parent is not self or not self.is_attached:
                return False
            if show:
                self.current = content.id
        return True


NAMES = {"page.environments": "Environments", "page.automations": "Automations"}
"""Labels of the actions that open a page; settings are a key in the help."""


class PageLinks(Widget):
    """Lines below the list of replicas; a click opens the page."""

    COMPONENT_CLASSES = {"links--key", "links--note", "links--needs-you"}
    DEFAULT_CSS = """
    PageLinks {
        height: 2;
        color: $text-muted;
        & > .links--key { color: $text-accent; text-style: bold; }
        & > .links--note { color: $text-warning; }
        & > .links--needs-you { color: $needs-you; }
    }
    """

    class Chosen(Message):
        """A page should be opened, by the action `method`."""

        def __init__(self, method: str) -> None:
            super().__init__()
            self.method = method

    def __init__(self) -> None:
        super().__init__()
        self._news = ""
        self._needs_you = False

    def show(self, news: str, *, needs_you: bool) -> None:
        """Show the automations' news in a few words, or nothing, and whether they wait for the user."""
        if (news, needs_you) != (self._news, self._needs_you):
            self._news, self._needs_you = news, needs_you
            self.refresh()

    def on_click(self, event: Click) -> None:
        links = _links()
        if event.y < len(links):
            self.post_message(self.Chosen(links[event.y].method))

    def render_line(self, y: int) -> Strip:
        links, width, base = _links(), self.size.width, self.rich_style
        if y >= len(links):
            return Strip.blank(width, base)
        news = self._news if links[y].id == "page.automations" else ""
        key = base + part_style(self, "links--key")
        note = base + part_style(self, f"links--{'needs-you' if self._needs_you else 'note'}")
        key_text = f" {fit(shown_key(links[y]), 2)}"
        room = max(0, width - len(key_text) - len(news) - 1)
        return Strip(
            [
                Segment(key_text, key),
                Segment(fit(NAMES[links[y].id], room), base),
                Segment(f"{news} ", note),
            ]
        ).crop(0, width)


def _links() -> list[Action]:
    return [action for action in ACTIONS[KeyContext.LIST] if action.id in NAMES]
