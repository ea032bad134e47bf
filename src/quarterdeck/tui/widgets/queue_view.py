"""Messages that wait for the running turn, and those that have not reached the service."""

from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.chats import ChatState
from quarterdeck.store.disk import OutgoingMessage
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, keyed, prompt_bindings
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import part_style

MOST_SHOWN = 5

STATES = {
    "sending": "sending",
    "unsent": "unsent, will retry",
    "unsure": "delivery unknown, {composer.queue}",
}


class QueueRow(NamedTuple):
    """One line; `outgoing` when the message has not arrived."""

    text: str
    key: str
    outgoing: bool = False


def rows_of(chat: ChatState | None, outgoing: list[OutgoingMessage]) -> list[QueueRow]:
    """Return the lines of a chat: its queue, then what has not arrived."""
    queue = chat.queue if chat else []
    rows = [
        QueueRow(f"queued {n}. {one_line(m.message)}", str(m.id)) for n, m in enumerate(queue, 1)
    ]
    return rows + [
        QueueRow(f"{keyed(STATES[m.state])}: {one_line(m.text)}{_more(m)}", m.key, outgoing=True)
        for m in outgoing
    ]


def _more(message: OutgoingMessage) -> str:
    count = len(message.images) + len(message.uploads)
    return f" (+{count} attached)" if count else ""


class QueueView(Widget, HasKeyContext, can_focus=True):
    """A few lines above the composer; hidden when nothing waits."""

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
        *prompt_bindings(KeyContext.QUEUE),
        Binding("down,j", "move(1)", "Down", show=False, id="queue.below"),
        Binding("up,k", "move(-1)", "Up", show=False, id="queue.above"),
        Binding("enter", "act('resend')", "Send again", show=False, id="queue.resend"),
        Binding("e", "act('edit')", "Edit", show=False, id="queue.edit"),
        Binding("d,delete", "act('drop')", "Drop", show=False, id="queue.drop"),
        Binding("s", "act('steer')", "Steer", show=False, id="queue.steer"),
        Binding("plus", "act('join')", "Join", show=False, id="queue.join"),
        Binding("K,shift+up", "act('up')", "Earlier", show=False, id="queue.up"),
        Binding("J,shift+down", "act('down')", "Later", show=False, id="queue.down"),
    ]

    cursor: reactive[int] = reactive(0)

    class Wanted(Message):
        """An action on a message: `resend`, `edit`, `drop`, `steer`, `join`, `up` or `down`."""

        def __init__(self, action: str, key: str) -> None:
            super().__init__()
            self.action = action
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[QueueRow] = []
        self._top = 0
        self._followed = ""

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.QUEUE

    @property
    def actionable(self) -> bool:
        """Whether any of its lines has an action."""
        return bool(self._rows)

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(row.text for row in self._rows)

    def show(self, chat: ChatState | None, outgoing: list[OutgoingMessage]) -> None:
        """Show a chat's queue and unsent messages."""
        rows = rows_of(chat, outgoing)
        if rows == self._rows:
            return
        grown = len(rows) != len(self._rows)
        before = self._rows[self.cursor].key if self.cursor < len(self._rows) else ""
        self._rows = rows
        self.display = bool(rows)
        self._put_cursor(self._followed or before)
        self.refresh(layout=grown)

    def follow(self, key: str) -> None:
        """Note that the message was moved: the cursor follows it, also when the lines come later."""
        self._followed = key
        self._put_cursor(key)

    def _put_cursor(self, key: str) -> None:
        places = [n for n, row in enumerate(self._rows) if row.key == key]
        if places:
            self.cursor = places[0]
            self._followed = ""
        else:
            self.cursor = max(0, min(self.cursor, len(self._rows) - 1))
        self._scroll()

    def _scroll(self) -> None:
        """Note that the cursor is visible, and the last line can show how many more there are."""
        room = MOST_SHOWN - 1 if len(self._rows) > MOST_SHOWN else MOST_SHOWN
        self._top = max(self.cursor - room + 1, min(self._top, self.cursor))
        if self._top + MOST_SHOWN >= len(self._rows):
            self._top = max(0, min(self._top, len(self._rows) - room))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Part of `Widget`."""
        return min(MOST_SHOWN, len(self._rows))

    def action_move(self, step: int) -> None:
        self.cursor = max(0, min(self.cursor + step, len(self._rows) - 1))
        self._scroll()

    def action_act(self, action: str) -> None:
        if self.cursor < len(self._rows):
            row = self._rows[self.cursor]
            if row.outgoing or action != "resend":
                self.post_message(self.Wanted(action, row.key))

    def on_click(self, event: Click) -> None:
        if self._top + event.y < len(self._rows):
            self.cursor = self._top + event.y

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        at = self._top + y
        if at >= len(self._rows):
            return Strip.blank(width, base)
        left = len(self._rows) - at
        if y == MOST_SHOWN - 1 and left > 1:
            return Strip([Segment("  ", base), Segment(fit(f"and {left} more", width - 2), base)])
        row = self._rows[at]
        style = base
        if row.outgoing:
            style = base + part_style(self, "queue--unsent")
        if self.has_focus and at == self.cursor:
            style = base + part_style(self, "queue--cursor")
        return Strip([Segment("  ", base), Segment(fit(row.text, width - 2), style)])
