"""What waits behind the running turn, and what has not reached the service."""

from rich.text import Text
from textual.widgets import Static

from quarterdeck.store.chats import ChatState
from quarterdeck.store.disk import Outgoing
from quarterdeck.tui.text import one_line

MOST_SHOWN = 4


class QueueView(Static):
    """A few lines above the composer; absent when nothing waits."""

    DEFAULT_CSS = """
    QueueView { height: auto; max-height: 6; padding: 0 2; color: $text-muted; display: none; }
    """

    def show(self, chat: ChatState | None, outgoing: list[Outgoing]) -> None:
        """Shows a chat's queue and unsent messages."""
        lines = [f"{n}. {one_line(m.message)}" for n, m in enumerate(chat.queue, 1)] if chat else []
        more = len(lines) - MOST_SHOWN
        text = Text(overflow="ellipsis", no_wrap=True)
        for line in lines[:MOST_SHOWN]:
            text.append(f"queued {line}\n")
        if more > 0:
            text.append(f"and {more} more\n")
        for message in outgoing:
            state = "sending" if message.state == "sending" else "not sent yet, kept"
            if message.state == "unsure":
                state = "unknown whether it arrived (ctrl+r checks again)"
            text.append(f"{state}: {one_line(message.text)}\n", style="bold")
        text.rstrip()
        self.display = bool(text.plain)
        self.update(text)
