"""The pages beside the replicas, a line each, with what they have to tell."""

from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.tui.actions import ACTIONS, Action, Where, shown_key
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit

NAMES = {"page.environments": "Environments", "page.automations": "Automations"}
"""What is shown of the actions that open a page; settings are a key in the help."""


class PageLinks(Widget):
    """Lines below the list of replicas; a click opens the page."""

    COMPONENT_CLASSES = {"links--key", "links--told"}
    DEFAULT_CSS = """
    PageLinks {
        height: 2;
        color: $text-muted;
        & > .links--key { color: $text-accent; text-style: bold; }
        & > .links--told { color: $text-warning; }
    }
    """

    class Chosen(Message):
        """A page should be opened; `method` is the action that does it."""

        def __init__(self, method: str) -> None:
            super().__init__()
            self.method = method

    def __init__(self) -> None:
        super().__init__()
        self._told = ""

    def show(self, told: str) -> None:
        """Says in a few words what the automations have to tell, or nothing."""
        if told != self._told:
            self._told = told
            self.refresh()

    def on_click(self, event: Click) -> None:
        links = _links()
        if event.y < len(links):
            self.post_message(self.Chosen(links[event.y].method))

    def render_line(self, y: int) -> Strip:
        links, width, base = _links(), self.size.width, self.rich_style
        if y >= len(links):
            return Strip.blank(width, base)
        told = self._told if links[y].id == "page.automations" else ""
        key = base + part_style(self, "links--key")
        note = base + part_style(self, "links--told")
        words = f" {fit(shown_key(links[y]), 2)}"
        room = max(0, width - len(words) - len(told) - 1)
        return Strip(
            [
                Segment(words, key),
                Segment(fit(NAMES[links[y].id], room), base),
                Segment(f"{told} ", note),
            ]
        ).crop(0, width)


def _links() -> list[Action]:
    return [action for action in ACTIONS[Where.LIST] if action.id in NAMES]
