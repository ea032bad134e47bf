"""The top line: the service, the connection to it, and who needs the user."""

from collections import Counter
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.status import NEEDS_YOU, Attention, ConnectionPhase, ConnectionState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import part_style

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState

BOLD = Style(bold=True)
NAME = "quarterdeck"
SHORTEST = 12
"""Width of the endpoint below which the program's name is hidden."""


def connection_words(state: ConnectionState) -> str:
    """Return the connection in a few words."""
    match state.phase:
        case ConnectionPhase.ONLINE:
            latency = f" {state.latency_ms:.0f} ms" if state.latency_ms is not None else ""
            return f"● online{latency}"
        case ConnectionPhase.CONNECTING:
            return "◌ connecting"
        case ConnectionPhase.RECONNECTING:
            wait = f" every {state.retry_in:.0f} s" if (state.retry_in or 0) >= 1 else ""
            return f"✗ reconnecting{wait}"
        case ConnectionPhase.REFUSED:
            return "✗ refused"


def count_words(states: "list[ReplicaState]") -> str:
    """Return how many need the user, work, and are done unseen."""
    counts = Counter(state.attention for state in states)
    needy = sum(counts[state] for state in NEEDS_YOU)
    parts = [
        f"▲ {needy} need{'s' if needy == 1 else ''} you" if needy else "",
        f"● {counts[Attention.WORKING]} working" if counts[Attention.WORKING] else "",
        f"✓ {counts[Attention.DONE_UNSEEN]} done" if counts[Attention.DONE_UNSEEN] else "",
    ]
    return "  ".join(part for part in parts if part)


class StatusLine(Widget):
    """One line, painted only when its text changes."""

    COMPONENT_CLASSES = {"status--trouble", "status--counts"}
    DEFAULT_CSS = """
    StatusLine {
        height: 1;
        background: $panel;
        color: $foreground;
        & > .status--trouble { color: $text-error; text-style: bold; }
        & > .status--counts { color: $text-primary; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[str, str, str, bool] = ("", "", "", False)

    def show(self, connection: ConnectionState, states: "list[ReplicaState]") -> None:
        """Show the state of the connection and of the replicas."""
        disconnected = connection.phase in {ConnectionPhase.RECONNECTING, ConnectionPhase.REFUSED}
        words = connection_words(connection)
        shown = (one_line(connection.endpoint), words, count_words(states), disconnected)
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        endpoint, words, counts, disconnected = self._shown
        base, width = self.rich_style, self.size.width
        style = base
        if disconnected:
            style = base + part_style(self, "status--trouble")
        count_style = base + part_style(self, "status--counts")
        # The endpoint is shortened first: it is the longest, and never changes.
        fixed = cell_len(f" {NAME}   {words}  {counts}")
        name = NAME if fixed + min(SHORTEST, cell_len(endpoint)) <= width else ""
        room = width - cell_len(f" {name}   {words}  {counts}")
        strip = Strip(
            [
                Segment(f" {name} " if name else "", base + BOLD),
                Segment(f" {fit(endpoint, max(0, min(room, cell_len(endpoint))))} ", base),
                Segment(f"{words}  ", style),
                Segment(counts, count_style),
            ]
        )
        return strip.crop(0, width).extend_cell_length(width, base)
