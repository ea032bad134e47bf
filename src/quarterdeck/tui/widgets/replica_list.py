"""The list of replicas: one line each, those who need the user first.

The order is kept while the list has the focus, so that no key meets another row than the user saw. At the
start, before the first key, the rows are sorted until the state of each has been read, and the cursor goes to
the first one that needs the user.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.store.replicas import RUNNING
from quarterdeck.store.status import WAITS, Attention
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.text import fit, wrapped
from quarterdeck.tui.textual_ext.type_ahead import keys_typed
from quarterdeck.tui.themes import MARKS, PullMark, part_style, pull_mark
from quarterdeck.tui.widgets.lines import distance_of

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState

NOTE_WIDTH = 9
LEAST_NAME = 16
"""Width in cells that a longer name has at least; where that leaves no room for the state in words, the
sign alone shows it."""
LEAST_WITH_BRANCH = 30
"""Width in cells below which a row has its name and state only."""
MARKED = "*"
BOLD = Style(bold=True)


@dataclass(frozen=True)
class ReplicaRow:
    """Content of one line; equal rows are not painted again."""

    replica_id: UUID
    sign: str
    color: str
    name: str
    note: str
    bold: bool
    marked: bool = False
    branch: str = ""
    distance: str = ""
    """Commits ahead of the base branch, and behind it."""
    pull: PullMark | None = None

    def name_width(self, width: int) -> int:
        """Return the cells for the name, and what stands behind it, in a list of this width."""
        room = width - 4  # without the marks before it and the blank behind it
        usual = max(4, room - NOTE_WIDTH)
        name, beside = cell_len(self.name), room - cell_len(self.note)
        if name <= usual or usual >= LEAST_NAME:
            return usual
        if name <= beside:
            return name
        return beside if beside >= LEAST_NAME else room

    def tail(self, room: int, *, narrow: bool = False) -> tuple[str, str]:
        """Return the facts that fit next to the name: branch and distance, and pull request.

        In a `narrow` list the pull request alone.
        """
        both = " ".join(part for part in (self.branch, self.distance) if part)
        pull = self.pull.sign if self.pull is not None else ""
        left = room - cell_len(self.name) - 2
        tails = ((both, pull), (self.distance, pull), ("", pull), (self.distance, ""))
        fitting = (tail for tail in tails if cell_len(" ".join(filter(None, tail))) <= left)
        return next((part for part in fitting if not (narrow and part[0])), ("", ""))


def row_of(state: "ReplicaState", *, marked: bool = False) -> ReplicaRow:
    """Return the line of a replica."""
    mark = MARKS[state.attention]
    bold = state.unseen or state.asks or state.attention is Attention.PLAN
    branch = next((status.branch for status in state.record.repository_statuses), None)
    if branch is not None and branch.endswith(f"/{state.name}"):
        branch = None  # the replica's own: it adds nothing
    return ReplicaRow(
        *(state.id, mark.sign, mark.color, name_line(state.name), mark.word, bold, marked),
        branch=one_line(branch or ""),
        distance=distance_of(state),
        pull=pull_mark(state),
    )


class ReplicaListView(ScrollView, HasKeyContext, can_focus=True):
    """A line-API list: the cost depends only on the visible rows."""

    COMPONENT_CLASSES = {
        "list--cursor",
        "list--note",
        "list--empty",
        "list--marked",
        *(f"list--{mark.color}" for mark in MARKS.values()),
    }
    DEFAULT_CSS = """
    ReplicaListView {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .list--cursor {
            background: $block-cursor-blurred-background;
            text-style: $block-cursor-blurred-text-style;
        }
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
        & > .list--needs-you { color: $needs-you; }
        & > .list--warning { color: $text-warning; }
        & > .list--error { color: $text-error; }
        & > .list--success { color: $text-success; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("home,g", "edge(0)", "First", show=False, id="list.first"),
        Binding("end", "edge(-1)", "Last", show=False, id="list.last"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page-up"),
        *prompt_bindings(KeyContext.LIST),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)

    class Highlighted(Message):
        """The cursor is on another replica."""

        def __init__(self, replica_id: UUID | None) -> None:
            super().__init__()
            self.replica_id = replica_id

    class Opened(Message):
        """The user wants to work with a replica."""

        def __init__(self, replica_id: UUID) -> None:
            super().__init__()
            self.replica_id = replica_id

    class MarksChanged(Message):
        """The marks have changed."""

    empty: reactive[str] = reactive("")
    """Shown when there are no rows."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[ReplicaRow] = []
        self._states: list[ReplicaState] = []
        """In the order of the store."""
        self._unread: set[UUID] | None = None
        """Those of the first rows whose states are still being read; None before the first rows."""
        self.marked: set[UUID] = set()
        """Those that the next command applies to; also those that the list does not show now."""

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.LIST

    @property
    def without(self) -> frozenset[str]:
        """Part of `HasKeyContext`."""
        return frozenset[str]() if self.is_unsorted else frozenset({"list.sort"})

    @property
    def is_unsorted(self) -> bool:
        """Whether the rows are in another order than the store has them."""
        return [row.replica_id for row in self._rows] != [state.id for state in self._states]

    @property
    def selected(self) -> UUID | None:
        """The replica under the cursor."""
        return self._rows[self.cursor].replica_id if self._rows else None

    @property
    def count(self) -> int:
        """How many it shows."""
        return len(self._rows)

    def show(self, states: "list[ReplicaState]", *, sort: bool = False) -> None:
        """Show replicas; the cursor stays on its replica.

        They are shown in this order, or without `sort` in that of their rows while the list has the focus.
        """
        self._states = states
        was_unread = self._read_on(states)
        if not sort and self.has_focus and not was_unread:
            states = self._in_place(states)
        rows = [row_of(state, marked=state.id in self.marked) for state in states]
        if rows == self._rows and rows:
            return
        chosen, old = self.selected, self._rows
        self._rows = rows
        self.virtual_size = Size(self.size.width, len(rows))
        position = next((i for i, row in enumerate(rows) if row.replica_id == chosen), None)
        if position is not None and states[0].id in was_unread:
            first = states[0].attention
            position = 0 if first in WAITS and first < states[position].attention else position
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

    def _read_on(self, states: "list[ReplicaState]") -> set[UUID]:
        """Return those whose states were being read until now; none once the user has typed a key."""
        unread = {state.id for state in states if not state.detailed and state.status in RUNNING}
        if self._unread is None and states:
            self._unread = unread
        before = self._unread or set()
        self._unread = None if self._unread is None else before & unread
        return set() if keys_typed(self) else before

    def _in_place(self, states: "list[ReplicaState]") -> "list[ReplicaState]":
        """Return the replicas in the order of their rows; new ones come last."""
        places = {row.replica_id: place for place, row in enumerate(self._rows)}
        return sorted(states, key=lambda state: places.get(state.id, len(places)))

    def sort(self) -> None:
        """Show the rows in the order of the store."""
        self.show(self._states, sort=True)

    def on_blur(self) -> None:
        """Sort the rows, which were kept in place while the list had the focus."""
        self._unread = set()
        self.sort()

    def select(self, replica_id: UUID) -> None:
        """Move the cursor to a replica."""
        for index, row in enumerate(self._rows):
            if row.replica_id == replica_id:
                self.cursor = index

    def unmark(self, replica_ids: set[UUID]) -> None:
        """Remove these marks."""
        self._set_marks(self.marked - replica_ids)

    def _set_marks(self, marked: set[UUID]) -> None:
        if marked != self.marked:
            self.marked = marked
            self.show(self._states)
            self.post_message(self.MarksChanged())

    def action_mark(self) -> None:
        """Mark or unmark the replica under the cursor, and go to the next one."""
        if self.selected is not None:
            self._set_marks(self.marked ^ {self.selected})
            self.action_move(1)

    def action_mark_all(self) -> None:
        """Mark all that are shown; if all are marked, unmark them."""
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
        self._unread = set()
        line = event.y + self.scroll_offset.y
        if line >= len(self._rows):
            return
        again = line == self.cursor
        self.cursor = line
        if again:
            self.action_open()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width  # next to the scrollbar
        line = y + self.scroll_offset.y
        base = self.rich_style
        if not self._rows:
            texts = wrapped(self.empty, width - 2)
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
        name_width = row.name_width(width)
        tail, pull = row.tail(name_width, narrow=width < LEAST_WITH_BRANCH)
        tail = f"{tail} " if tail and pull else tail
        shown_width = name_width - cell_len(tail + pull)
        color = f"list--{row.pull.color}" if row.pull is not None else "list--note"
        colored = style if here else base + self.get_component_rich_style(color)
        name_style = style + BOLD if row.bold else style
        return Strip(
            [
                Segment(MARKED if row.marked else " ", marked),
                Segment(f"{row.sign} ", sign),
                Segment(fit(row.name, shown_width), name_style),
                Segment(tail, style if here else note),
                Segment(f"{pull} ", colored),
                Segment(fit(row.note, width - 4 - name_width), style if here else note),
            ]
        )
