"""The head line of a replica: name, agent, branch, changed lines, and what to be aware of."""

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit, one_line

BOLD = Style(bold=True)
SHORTEST_NAME = 8
UNISOLATED = "⚠ not isolated"


def facts_of(state: ReplicaState) -> list[str]:
    """Changed lines, agent and branch: those first that should be seen when there is little room."""
    chat = state.first_chat
    added, removed = state.changed_lines
    facts: list[str] = []
    if added or removed or state.untracked:
        untracked = f" ?{state.untracked}" if state.untracked else ""
        facts.append(f"+{added} -{removed}{untracked}")
    facts.append((chat.record.provider if chat else state.record.coding_agent) or "")
    facts += [status.branch or "" for status in state.record.repository_statuses[:1]]
    return [one_line(fact) for fact in facts if fact]


class HeadLine(Widget):
    """One line; the name gives way last but one, facts fall off at the end."""

    COMPONENT_CLASSES = {"head--warning"}
    DEFAULT_CSS = """
    HeadLine {
        height: 1;
        background: $boost;
        & > .head--warning { color: $text-warning; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[str, tuple[str, ...], str] = ("", (), "")

    def show(self, state: ReplicaState) -> None:
        """Shows a replica."""
        warning = UNISOLATED if state.unisolated else ""
        shown = (one_line(state.name), tuple(facts_of(state)), warning)
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        name, facts, warning = self._shown
        base, width = self.rich_style, self.size.width
        warned = base + part_style(self, "head--warning")
        room = max(0, width - 1 - (cell_len(warning) + 2 if warning else 0))
        kept: list[str] = []
        for fact in facts:
            taken = sum(cell_len(f" · {one}") for one in [*kept, fact])
            if taken + min(SHORTEST_NAME, cell_len(name)) <= room:
                kept.append(fact)
        rest = "".join(f" · {fact}" for fact in kept)
        shown = fit(name, min(cell_len(name), max(0, room - cell_len(rest))))
        segments = [Segment(f" {shown}", base + BOLD), Segment(rest, base)]
        if warning:
            segments.append(Segment(f"  {warning}", warned))
        return Strip(segments).crop(0, width).extend_cell_length(width, base)
