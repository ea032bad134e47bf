"""The list of replicas: one line each, those who need the user first, in a sidebar or as a table.

    states in the store's order -> in place, grouped -> lines -> cells of the visible ones -> what changed

The order is kept while the list has the focus, so that no key meets another row than the user saw. At the
start, before the first key, the rows are sorted until the state of each has been read, and the cursor goes to
the first one that needs the user.
"""

from typing import TYPE_CHECKING, ClassVar, NamedTuple
from uuid import UUID

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from quarterdeck.store.list_view import Grouping, ListView, Names, SortKey, group_name
from quarterdeck.store.replicas import RUNNING
from quarterdeck.store.status import WAITS
from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.text import fit, wrapped
from quarterdeck.tui.textual_ext.type_ahead import keys_typed
from quarterdeck.tui.themes import MARKS, part_style
from quarterdeck.tui.widgets.replica_rows import (
    Line,
    ListCell,
    age_lasts,
    column_at,
    group_line,
    head_line,
    service_prefix,
    sidebar_line,
    table_line,
)
from quarterdeck.wire.base import utc_now

if TYPE_CHECKING:
    from quarterdeck.store.replicas import ReplicaState

BOLD = Style(bold=True)
USUAL_COLUMNS = ((120, 34), (0, 26))
"""Widths of the screen and, from there on, of the list, as in the style of the main screen."""


class GroupHead(NamedTuple):
    """The line above the replicas of a group."""

    key: UUID | str | None
    states: "list[ReplicaState]"


class ListSide(Vertical):
    """The part of the screen with the list, which the person can make wider next to a replica."""

    def widen(self, wider: int) -> int:
        """Show columns in addition to the usual ones, at most half of the screen; return how many."""
        width = self.screen.size.width
        usual = next(columns for least, columns in USUAL_COLUMNS if width >= least)
        wider = max(0, min(wider, width // 2 - usual))
        if wider or self.styles.has_rule("min_width"):
            self.styles.min_width = usual + wider if wider else None
        return wider


class ReplicaListView(ScrollView, HasKeyContext, can_focus=True):
    """A line-API list: the cost depends only on the visible rows."""

    COMPONENT_CLASSES = {
        "list--cursor",
        "list--note",
        "list--empty",
        "list--marked",
        "list--group",
        "list--head",
        "list--warning",
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
        & > .list--group { color: $text-muted; text-style: bold; }
        & > .list--head { color: $text-muted; background: $panel; }
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
    empty_action = ""
    """The action of the screen that a click on that text carries out."""

    class ColumnChosen(Message):
        """The title of a column was clicked."""

        def __init__(self, key: SortKey) -> None:
            super().__init__()
            self.key = key

    table: reactive[bool] = reactive(False)
    """Whether it has the width for a table."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = ListView()
        self._pinned: set[UUID] = set()
        self._names: Names = {}
        self._several = False
        """Whether several services are shown."""
        self._states: list[ReplicaState] = []
        """In the order of the store."""
        self._shown: list[ReplicaState] = []
        """In the order of their rows."""
        self._lines: list[GroupHead | int] = []
        """Of each line the head, or the place in `_shown`."""
        self._line_of: list[int] = []
        """The line of each row."""
        self._drawn: dict[int, Line] = {}
        """The visible lines, as they were painted."""
        self._age_timer: Timer | None = None
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
        return any(one is not other for one, other in zip(self._shown, self._states, strict=True))

    @property
    def selected(self) -> UUID | None:
        """The replica under the cursor."""
        return self._shown[self.cursor].id if self._shown else None

    @property
    def count(self) -> int:
        """How many it shows."""
        return len(self._shown)

    def set_view(self, view: ListView, names: Names, *, several: bool = False) -> None:
        """Set how the next states are shown; `names` are those of environments.

        `several` is whether several services are shown.
        """
        if (view != self._view or several != self._several) and self.table:
            self.refresh(Region(0, 0, self.size.width, 1))
        self._view, self._names, self._several = view, names, several
        self._pinned = set(view.pinned)

    def show(self, states: "list[ReplicaState]", *, sort: bool = False) -> None:
        """Show replicas; the cursor stays on its replica.

        They are shown in this order, or without `sort` in that of their rows while the list has the focus.
        """
        self._states = states
        was_unread = self._read_on(states)
        if not sort and self.has_focus and not was_unread:
            states = self._in_place(states)
        chosen = self.selected
        self._set_rows(states)
        position = next((i for i, state in enumerate(states) if state.id == chosen), None)
        if position is not None and states[0].id in was_unread:
            first = states[0].attention
            position = 0 if first in WAITS and first < states[position].attention else position
        self.cursor = max(0, min(self.cursor if position is None else position, len(states) - 1))
        self._repaint()
        if self.selected != chosen:
            self.post_message(self.Highlighted(self.selected))

    def _set_rows(self, states: "list[ReplicaState]") -> None:
        lines: list[GroupHead | int] = []
        self._shown, self._line_of = states, []
        head: GroupHead | None = None
        for row, state in enumerate(states):
            if self._view.group is not Grouping.NONE:
                key = self._view.group_of(state)
                if head is None or head.key != key:
                    head = GroupHead(key, [])
                    lines.append(head)
                head.states.append(state)
            self._line_of.append(len(lines))
            lines.append(row)
        if not (lines and self._lines):
            self.refresh()
        self._lines = lines
        self._measure()

    def _measure(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._lines) + self._top)

    @property
    def _top(self) -> int:
        """Lines above the rows: the titles of the table's columns."""
        return 1 if self.table else 0

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width  # next to the scrollbar

    def _repaint(self) -> None:
        """Paint the visible lines that have changed."""
        for line in self._visible:
            if self._content(line) != self._drawn.get(line, ()):
                self._paint(line)
        self._await_age()

    @property
    def _visible(self) -> range:
        first = self.scroll_offset.y
        return range(first, first + self.size.height - self._top)

    def _await_age(self) -> None:
        """Paint again when the first of the ages that are shown becomes another one."""
        if self._age_timer is not None:
            self._age_timer.stop()
            self._age_timer = None
        if not self.table:
            return
        now = utc_now()
        entries = self._lines[self._visible.start : self._visible.stop]
        shown = [self._shown[entry] for entry in entries if isinstance(entry, int)]
        if shown:
            soonest = min(age_lasts(state.active_at, now) for state in shown)
            self._age_timer = self.set_timer(soonest, self._repaint)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Part of `ScrollView`: other ages are shown."""
        super().watch_scroll_y(old_value, new_value)
        self._await_age()

    def watch_table(self) -> None:
        """Draw it anew."""
        self._measure()
        self.refresh()
        self._repaint()
        self._show_cursor()

    def _read_on(self, states: "list[ReplicaState]") -> set[UUID]:
        """Return those whose states were being read until now; none once the user has typed a key."""
        unread = {state.id for state in states if not state.detailed and state.status in RUNNING}
        if self._unread is None and states:
            self._unread = unread
        before = self._unread or set()
        self._unread = None if self._unread is None else before & unread
        return set() if keys_typed(self) else before

    def _in_place(self, states: "list[ReplicaState]") -> "list[ReplicaState]":
        """Return the replicas in the order of their rows; new ones come last, or last in their group."""
        places = {state.id: place for place, state in enumerate(self._shown)}
        kept = sorted(states, key=lambda state: places.get(state.id, len(places)))
        return self._view.grouped(kept)

    def sort(self) -> None:
        """Show the rows in the order of the store."""
        self.show(self._states, sort=True)

    def on_blur(self) -> None:
        """Sort the rows, which were kept in place while the list had the focus."""
        self._unread = set()
        self.sort()

    def select(self, replica_id: UUID) -> None:
        """Move the cursor to a replica."""
        for index, state in enumerate(self._shown):
            if state.id == replica_id:
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
        shown = {state.id for state in self._shown}
        self._set_marks(self.marked - shown if shown <= self.marked else self.marked | shown)

    def on_resize(self) -> None:
        self._measure()

    def watch_cursor(self, old: int, new: int) -> None:
        for row in {old, new}:
            if row < len(self._line_of):
                self._paint(self._line_of[row])
        self._show_cursor()
        if self._shown:
            self.post_message(self.Highlighted(self.selected))

    def _show_cursor(self) -> None:
        """Scroll to the row under the cursor, and to the head above it."""
        if not self._shown:
            return
        line = self._line_of[self.cursor]
        head = int(line > 0 and isinstance(self._lines[line - 1], GroupHead))
        region = Region(0, line - head, 1, 1 + head + self._top)
        self.scroll_to_region(region, animate=False, force=True)

    def _paint(self, line: int) -> None:
        y = line - self.scroll_offset.y + self._top
        if self._top <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def action_move(self, step: int) -> None:
        self.cursor = max(0, min(len(self._shown) - 1, self.cursor + step))

    def action_edge(self, index: int) -> None:
        self.cursor = max(0, index % len(self._shown)) if self._shown else 0

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.size.height - 1 - self._top))

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    async def on_click(self, event: Click) -> None:
        self._unread = set()
        if not self._lines and self.empty:
            await self.screen.run_action(self.empty_action)
            return
        if event.y < self._top:
            if (key := column_at(event.x, self._width, several=self._several)) is not None:
                self.post_message(self.ColumnChosen(key))
            return
        line = event.y + self.scroll_offset.y - self._top
        row = self._lines[line] if line < len(self._lines) else None
        if not isinstance(row, int):
            return
        again = row == self.cursor
        self.cursor = row
        if again:
            self.action_open()

    def render_line(self, y: int) -> Strip:
        if y < self._top:
            titles = head_line(self._view, self._width, several=self._several)
            return self._strip(titles, self._look("head"))
        line = y + self.scroll_offset.y - self._top
        if not self._lines:
            texts = wrapped(self.empty, self._width - 2)
            text = texts[line] if line < len(texts) else ""
            return self._strip(
                (ListCell(f" {fit(text, self._width - 1)}", "empty"),), self.rich_style
            )
        if y == self._top:
            self._forget_hidden()
        self._drawn[line] = content = self._content(line)
        if not content:
            return Strip.blank(self._width, self.rich_style)
        if self._lines[line] == self.cursor:
            style = self.rich_style + part_style(self, "list--cursor")
            plain = tuple(cell._replace(look="") for cell in content)
            return self._strip(plain, style)
        return self._strip(content, self.rich_style)

    def _forget_hidden(self) -> None:
        visible = self._visible
        self._drawn = {line: one for line, one in self._drawn.items() if line in visible}

    def _content(self, line: int) -> Line:
        """Return what a line shows; nothing below the last one."""
        if line >= len(self._lines):
            return ()
        entry, width = self._lines[line], self._width
        if isinstance(entry, GroupHead):
            return group_line(group_name(entry.key, self._names), entry.states, width)
        state = self._shown[entry]
        marked, pinned = state.id in self.marked, state.id in self._pinned
        if self.table:
            several = self._several
            now = utc_now()
            return table_line(state, width, now, marked=marked, pinned=pinned, several=several)
        prefix = "" if self._view.group is Grouping.SERVICE else service_prefix(state)
        return sidebar_line(state, width, marked=marked, pinned=pinned, prefix=prefix)

    def _look(self, look: str) -> Style:
        return self.rich_style + part_style(self, f"list--{look}")

    def _strip(self, line: Line, base: Style) -> Strip:
        segments: list[Segment] = []
        for text, look, bold in line:
            style = base + self.get_component_rich_style(f"list--{look}") if look else base
            segments.append(Segment(text, style + BOLD if bold else style))
        return Strip(segments).extend_cell_length(self._width, base).crop(0, self._width)
