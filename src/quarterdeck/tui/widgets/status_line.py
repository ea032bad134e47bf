"""The top line: which service, how the line to it is, and who needs the person."""

from collections import Counter
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.attention import NEEDS_YOU, Attention
from quarterdeck.store.connection import ConnectionState, Phase
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit, one_line

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState

BOLD = Style(bold=True)
NAME = "quarterdeck"
SHORTEST = 12
"""Cells of the endpoint below which the program's name makes room."""


def connection_words(state: ConnectionState) -> str:
    """The connection in a few words."""
    match state.phase:
        case Phase.ONLINE:
            latency = f" {state.latency_ms:.0f} ms" if state.latency_ms is not None else ""
            return f"● online{latency}"
        case Phase.CONNECTING:
            return "◌ connecting"
        case Phase.RECONNECTING:
            wait = f" every {state.retry_in:.0f} s" if (state.retry_in or 0) >= 1 else ""
            return f"✗ reconnecting{wait}"
        case Phase.REFUSED:
            return "✗ refused"


def count_words(states: "list[ReplicaState]") -> str:
    """How many need the person, work, and are done unseen."""
    counts = Counter(state.attention for state in states)
    needy = sum(counts[state] for state in NEEDS_YOU)
    parts = [
        f"▲ {needy} need{'s' if needy == 1 else ''} you" if needy else "",
        f"● {counts[Attention.WORKING]} working" if counts[Attention.WORKING] else "",
        f"✓ {counts[Attention.DONE_UNSEEN]} new" if counts[Attention.DONE_UNSEEN] else "",
    ]
    return "  ".join(part for part in parts if part)


class StatusLine(Widget):
    """One line, painted only when its words change."""

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
        """Shows the state of the line and of the replicas."""
        trouble = connection.phase in {Phase.RECONNECTING, Phase.REFUSED}
        words = connection_words(connection)
        shown = (one_line(connection.endpoint), words, count_words(states), trouble)
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        endpoint, words, counts, trouble = self._shown
        base, width = self.rich_style, self.size.width
        style = base
        if trouble:
            style = base + part_style(self, "status--trouble")
        count_style = base + part_style(self, "status--counts")
        # The endpoint gives way: it is the longest, and never changes.
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
