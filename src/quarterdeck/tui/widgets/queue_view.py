"""What waits behind the running turn, and what has not reached the service."""

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.chats import ChatState
from quarterdeck.store.disk import Outgoing
from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.text import fit, one_line

MOST_SHOWN = 4

STATES = {
    "sending": "sending",
    "unsent": "not sent yet, goes out by itself",
    "unsure": "may not have arrived, shift+tab",
}


@dataclass(frozen=True)
class Row:
    """One line; `outgoing` when the message has not arrived, so that something can be done."""

    text: str
    key: str = ""
    outgoing: bool = False


def rows_of(chat: ChatState | None, outgoing: list[Outgoing]) -> list[Row]:
    """The lines of a chat: its queue, then what has not arrived."""
    queue = chat.queue if chat else []
    rows = [Row(f"queued {n}. {one_line(m.message)}") for n, m in enumerate(queue, 1)]
    more = len(rows) - MOST_SHOWN
    if more > 0:
        rows[MOST_SHOWN:] = [Row(f"and {more} more")]
    return rows + [
        Row(f"{STATES[m.state]}: {one_line(m.text)}", m.key, outgoing=True)
        for m in outgoing[:MOST_SHOWN]
    ]


class QueueView(Widget, can_focus=True):
    """A few lines above the composer; absent when nothing waits."""

    COMPONENT_CLASSES = {"queue--cursor", "queue--unsent"}
    DEFAULT_CSS = """
    QueueView {
        display: none;
        height: auto;
        color: $text-muted;
        & > .queue--unsent { color: $text-warning; }
        & > .queue--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *prompt_bindings(Where.QUEUE),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("enter", "act('resend')", "Send again", show=False),
        Binding("e", "act('edit')", "Edit", show=False),
        Binding("d,delete", "act('drop')", "Drop", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Wanted(Message):
        """Something should be done with a message: `resend`, `edit` or `drop`."""

        def __init__(self, deed: str, key: str) -> None:
            super().__init__()
            self.deed = deed
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []

    @property
    def actionable(self) -> bool:
        """Whether anything can be done with a line of it."""
        return any(row.outgoing for row in self._rows)

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(row.text for row in self._rows)

    def show(self, chat: ChatState | None, outgoing: list[Outgoing]) -> None:
        """Shows a chat's queue and unsent messages."""
        rows = rows_of(chat, outgoing)
        if rows == self._rows:
            return
        grown = len(rows) != len(self._rows)
        self._rows = rows
        self.display = bool(rows)
        self.cursor = self._nearest(self.cursor)
        self.refresh(layout=grown)

    def _nearest(self, at: int) -> int:
        """The line nearest to one that something can be done with."""
        choices = [n for n, row in enumerate(self._rows) if row.outgoing]
        return min(choices, key=lambda n: abs(n - at), default=0)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Part of `Widget`."""
        return len(self._rows)

    def action_move(self, step: int) -> None:
        ahead = range(self.cursor + step, len(self._rows) if step > 0 else -1, step)
        self.cursor = next((n for n in ahead if self._rows[n].outgoing), self.cursor)

    def action_act(self, deed: str) -> None:
        if self.cursor < len(self._rows) and self._rows[self.cursor].outgoing:
            self.post_message(self.Wanted(deed, self._rows[self.cursor].key))

    def on_click(self, event: Click) -> None:
        if event.y < len(self._rows) and self._rows[event.y].outgoing:
            self.cursor = event.y

    def on_focus(self) -> None:
        self.cursor = self._nearest(self.cursor)

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        if y >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[y]
        style = base
        if row.outgoing:
            style = base + self.get_component_rich_style("queue--unsent", partial=True)
        if self.has_focus and y == self.cursor and row.outgoing:
            style = base + self.get_component_rich_style("queue--cursor", partial=True)
        return Strip([Segment("  ", base), Segment(fit(row.text, width - 2), style)])
