"""The list of replicas: one line each, those who need the person first."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.store.attention import Attention
from quarterdeck.tui.actions import Where, prompt_bindings
from quarterdeck.tui.marks import MARKS
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit
from quarterdeck.tui.widgets.placed import Placed

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState

NOTE_WIDTH = 9
MARKED = "*"
BOLD = Style(bold=True)


@dataclass(frozen=True)
class Row:
    """What one line shows; equal rows are not painted again."""

    replica_id: UUID
    sign: str
    color: str
    name: str
    note: str
    bold: bool
    marked: bool = False


def row_of(state: "ReplicaState", *, marked: bool = False) -> Row:
    """The line of a replica."""
    mark = MARKS[state.attention]
    bold = state.unseen or state.asks or state.attention is Attention.PLAN
    return Row(state.id, mark.sign, mark.color, state.name, mark.word, bold, marked)


class ReplicaList(ScrollView, Placed, can_focus=True):
    """A line-API list: hundreds of rows cost what the visible ones cost."""

    COMPONENT_CLASSES = {
        "list--cursor",
        "list--note",
        "list--empty",
        "list--marked",
        *(f"list--{mark.color}" for mark in MARKS.values()),
    }
    DEFAULT_CSS = """
    ReplicaList {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .list--cursor { background: $block-cursor-blurred-background; }
        &:focus > .list--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
        & > .list--note { color: $text-muted; }
        & > .list--empty { color: $text-muted; }
        & > .list--marked { color: $text-accent; text-style: bold; }
        & > .list--muted { color: $text-muted; }
        & > .list--primary { color: $text-primary; }
        & > .list--secondary { color: $text-secondary; }
        & > .list--warning { color: $text-warning; }
        & > .list--error { color: $text-error; }
        & > .list--success { color: $text-success; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("home,g", "edge(0)", "First", show=False, id="list.first"),
        Binding("end,G", "edge(-1)", "Last", show=False, id="list.last"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page-up"),
        *prompt_bindings(Where.LIST),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)

    class Highlighted(Message):
        """The cursor is on another replica."""

        def __init__(self, replica_id: UUID | None) -> None:
            super().__init__()
            self.replica_id = replica_id

    class Opened(Message):
        """The person wants to work with a replica."""

        def __init__(self, replica_id: UUID) -> None:
            super().__init__()
            self.replica_id = replica_id

    class MarksChanged(Message):
        """Others are marked now."""

    empty: reactive[str] = reactive("")
    """Shown when there are no rows."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._states: list[ReplicaState] = []
        self.marked: set[UUID] = set()
        """Those that the next command is for; also those that the list does not show now."""

    @property
    def place(self) -> Where:
        """Part of `Placed`."""
        return Where.LIST

    @property
    def selected(self) -> UUID | None:
        """The replica under the cursor."""
        return self._rows[self.cursor].replica_id if self._rows else None

    @property
    def count(self) -> int:
        """How many it shows."""
        return len(self._rows)

    def show(self, states: "list[ReplicaState]") -> None:
        """Shows replicas in this order; the cursor stays on its replica."""
        self._states = states
        rows = [row_of(state, marked=state.id in self.marked) for state in states]
        if rows == self._rows and rows:
            return
        chosen, old = self.selected, self._rows
        self._rows = rows
        self.virtual_size = Size(self.size.width, len(rows))
        position = next((i for i, row in enumerate(rows) if row.replica_id == chosen), None)
        self.cursor = max(0, min(self.cursor if position is None else position, len(rows) - 1))
        if len(old) != len(rows) or not rows:
            self.refresh()
        else:
            changed = [
                i for i, pair in enumerate(zip(old, rows, strict=True)) if pair[0] != pair[1]
            ]
            self._paint(*changed)
        if self.selected != chosen:
            self.post_message(self.Highlighted(self.selected))

    def select(self, replica_id: UUID) -> None:
        """Puts the cursor on a replica."""
        for index, row in enumerate(self._rows):
            if row.replica_id == replica_id:
                self.cursor = index

    def unmark(self, replica_ids: set[UUID]) -> None:
        """Marks these no longer."""
        self._set_marks(self.marked - replica_ids)

    def _set_marks(self, marked: set[UUID]) -> None:
        if marked != self.marked:
            self.marked = marked
            self.show(self._states)
            self.post_message(self.MarksChanged())

    def action_mark(self) -> None:
        """Marks the replica under the cursor, or no longer, and goes on to the next one."""
        if self.selected is not None:
            self._set_marks(self.marked ^ {self.selected})
            self.action_move(1)

    def action_mark_all(self) -> None:
        """Marks all that are shown; when they are, none."""
        shown = {row.replica_id for row in self._rows}
        self._set_marks(self.marked - shown if shown <= self.marked else self.marked | shown)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows))

    def watch_cursor(self, old: int, new: int) -> None:
        self._paint(old, new)
        self.scroll_to_region(Region(0, new, 1, 1), animate=False, force=True)
        if self._rows:
            self.post_message(self.Highlighted(self.selected))

    def _paint(self, *lines: int) -> None:
        top = self.scroll_offset.y
        self.refresh(*(Region(0, line - top, self.size.width, 1) for line in lines))

    def action_move(self, step: int) -> None:
        self.cursor = max(0, min(len(self._rows) - 1, self.cursor + step))

    def action_edge(self, index: int) -> None:
        self.cursor = max(0, index % len(self._rows)) if self._rows else 0

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1))

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def on_click(self, event: Click) -> None:
        line = event.y + self.scroll_offset.y
        if line >= len(self._rows):
            return
        again = line == self.cursor
        self.cursor = line
        if again:
            self.action_open()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width  # beside the scrollbar
        line = y + self.scroll_offset.y
        base = self.rich_style
        if not self._rows:
            texts = self.empty.splitlines()
            text = texts[line] if line < len(texts) else ""
            style = self.get_component_rich_style("list--empty")
            return Strip([Segment(f" {fit(text, width - 1)}", base + style)])
        if line >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[line]
        here = line == self.cursor
        cursor = part_style(self, "list--cursor")
        style = base + cursor if here else base
        note = base + self.get_component_rich_style("list--note")
        sign = style if here else base + self.get_component_rich_style(f"list--{row.color}")
        marked = style if here else base + self.get_component_rich_style("list--marked")
        name_width = max(4, width - 4 - NOTE_WIDTH)
        name_style = style + BOLD if row.bold else style
        return Strip(
            [
                Segment(MARKED if row.marked else " ", marked),
                Segment(f"{row.sign} ", sign),
                Segment(fit(row.name, name_width), name_style),
                Segment(" ", style),
                Segment(fit(row.note, width - 4 - name_width), style if here else note),
            ]
        )
