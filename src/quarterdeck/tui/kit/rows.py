"""Lists: rows of one height with a cursor. The cost depends only on the visible rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from rich.cells import cell_len, set_cell_size
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from quarterdeck.transcript.text import clean
from quarterdeck.tui.kit.spans import Emphasis, Line, Span, TextRole, fit
from quarterdeck.tui.kit.text_view import SpanView, on_top
from quarterdeck.tui.text import MOST_IN_CELL, wrapped
from quarterdeck.tui.text import fit as fit_text
from quarterdeck.tui.themes import NEEDS_YOU, part_style

Key = TypeVar("Key")
Key_co = TypeVar("Key_co", covariant=True)

NEAR = 10
"""Rows before the end at which more are requested."""
ROLES = {
    "": TextRole.TEXT,
    "muted": TextRole.DIM,
    "primary": TextRole.WORKING,
    "secondary": TextRole.COMING,
    "success": TextRole.DONE,
    NEEDS_YOU: TextRole.ASKING,
    "warning": TextRole.WARNING,
    "error": TextRole.FAILED,
}
"""The roles of texts in the theme's colors."""


class ListRow(Protocol[Key_co]):
    """What a list shows. Equal rows are not painted again."""

    @property
    def key(self) -> Key_co | None:
        """Names the row to listeners; a row without one (or with an empty one) is a heading."""
        ...

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Return the `height` lines that every row of the list has, in at most `width` cells."""
        ...


@dataclass(frozen=True)
class Row:
    """One line of spans. `note` is at the right."""

    key: str
    words: Line
    note: Line = ()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        note = sum(cell_len(span.text) for span in self.note)
        room = width - 1 - (note + 2 if note and note + 12 < width else 0)
        words = fit(self.words, max(1, room))
        if room == width - 1:
            return (words,)
        used = sum(cell_len(span.text) for span in words)
        return ((*words, Span(" " * (room - used + 2)), *self.note),)


class ColumnCell(NamedTuple):
    """A part of a row in columns: `width` cells, cut or padded; 0 for as many as the text has, -1 for the rest."""

    text: str
    role: TextRole = TextRole.TEXT
    width: int = 0
    marks: Emphasis = Emphasis.NONE


def columns(width: int, *cells: ColumnCell) -> Line:
    """Return cells side by side, in at most `width` cells. Their blanks count."""
    most = MOST_IN_CELL * max(1, width)
    if any(len(cell.text) > most for cell in cells):
        cells = tuple(cell._replace(text=cell.text[:most]) for cell in cells)
    fixed = sum(cell.width or cell_len(cell.text) for cell in cells if cell.width >= 0)
    left = width
    spans: list[Span] = []
    for cell in cells:
        size = max(0, width - fixed) if cell.width < 0 else cell.width or cell_len(cell.text)
        size = min(size, left)
        left -= size
        text = clean(cell.text).replace("\n", " ").replace("\t", " ")
        cut = cell_len(text) > size > 0
        text = set_cell_size(text, size - 1) + "…" if cut else set_cell_size(text, size)
        spans.append(Span(text, cell.role, cell.marks))
    return tuple(spans)


class RowList(SpanView, Generic[Key], can_focus=True):
    """Rows of one height with a cursor that stays on its row when others are added or removed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor"}
    DEFAULT_CSS = """
    RowList {
        & > .rows--cursor {
            background: $block-cursor-blurred-background;
            text-style: $block-cursor-blurred-text-style;
        }
        &:focus > .rows--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("home,g", "edge(0)", "First", show=False),
        Binding("end,G", "edge(-1)", "Last", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]

    empty: reactive[str] = reactive("")
    """Shown when there are no rows."""
    cursor: reactive[int] = reactive(0, repaint=False)

    class Highlighted(Message):
        """The cursor is on another row."""

        def __init__(self, rows: "RowList[Any]") -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> "RowList[Any]":
            """The list."""
            return self.rows

    class EndNear(Highlighted):
        """The end of the loaded rows is near: more should be read, if there is more."""

    class Chosen(Highlighted):
        """A row was opened: by a key, or by clicking the row under the cursor."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: Sequence[ListRow[Key]] = ()
        self._able: list[int] = []
        """Rows that the cursor may be on."""

    def row_height(self, width: int) -> int:
        """Return how many lines a row has."""
        return 1

    @property
    def chosen(self) -> Key | None:
        """The key of the row under the cursor."""
        return self.rows[self.cursor].key or None if self.cursor < len(self.rows) else None

    def show_rows(self, rows: Sequence[ListRow[Key]], *, keep: bool = True) -> None:
        """Show rows. The cursor keeps its row or stays near where it was, or goes to the first one."""
        rows = tuple(rows)
        if keep and rows == self.rows:
            return
        before = self.chosen
        self.rows = rows
        self._able = [line for line, row in enumerate(rows) if row.key]
        self._measure()
        at = next((line for line in self._able if rows[line].key == before), None) if keep else None
        self.cursor = self._nearest(self.cursor if keep else 0) if at is None else at
        if not keep:
            self.scroll_to(0, 0, animate=False, force=True)
        self.refresh()
        if self.chosen != before:
            self.tell()

    def select(self, key: Key) -> None:
        """Move the cursor to a row."""
        self.cursor = next((line for line in self._able if self.rows[line].key == key), self.cursor)

    def choose(self) -> None:
        """Open the row under the cursor."""
        if self.chosen:
            self.post_message(self.Chosen(self))

    def tell(self) -> None:
        """Report that the cursor is on another row."""
        self.post_message(self.Highlighted(self))
        if self.rows and self.cursor >= len(self.rows) - NEAR:
            self.post_message(self.EndNear(self))

    def on_mouse_scroll_down(self) -> None:
        """Request more rows when the user scrolls to the end."""
        if self.scroll_offset.y + self.size.height >= len(self.rows) - NEAR:
            self.post_message(self.EndNear(self))

    def _nearest(self, line: int) -> int:
        return min(self._able, key=lambda able: abs(able - line), default=0)

    def _measure(self) -> None:
        height = self.row_height(self.size.width)
        self.virtual_size = Size(0, max(1, len(self.rows)) * height)

    def on_resize(self) -> None:
        self._measure()

    def watch_cursor(self, old: int, new: int) -> None:
        height, top = self.row_height(self.size.width), self.scroll_offset.y
        width = self.size.width
        self.refresh(*(Region(0, row * height - top, width, height) for row in (old, new)))
        if not self.rows:
            return
        # A heading becomes visible again when the cursor comes back to the first row below it.
        heading = new > 0 and not self.rows[new - 1].key
        first = 0 if self._able and new == self._able[0] else new - heading
        region = Region(self.scroll_offset.x, first * height, 1, (new - first + 1) * height)
        self.scroll_to_region(region, animate=False, force=True)
        self.tell()

    def action_move(self, step: int) -> None:
        self._go(self.cursor + step, step)

    def action_page(self, direction: int) -> None:
        rows = max(1, self.size.height // self.row_height(self.size.width) - 1)
        self._go(self.cursor + direction * rows, direction * rows)

    def action_edge(self, index: int) -> None:
        self.cursor = self._able[index] if self._able else 0

    def _go(self, to: int, step: int) -> None:
        """Go to the row nearest to one further on; where there is none, scroll only."""
        down = step > 0
        here = (
            bisect_right(self._able, self.cursor) if down else bisect_left(self._able, self.cursor)
        )
        ahead = self._able[here:] if down else self._able[:here]
        if not ahead:
            self.scroll_relative(y=step, animate=False)
            return
        after = bisect_left(ahead, to)
        near = ahead[max(0, after - 1) : after + 1] or ahead[-1:]
        self.cursor = min(near, key=lambda able: abs(able - to))

    def on_click(self, event: Click) -> None:
        row = (event.y + self.scroll_offset.y) // self.row_height(self.size.width)
        if row >= len(self.rows) or not self.rows[row].key:
            return
        again = row == self.cursor
        self.cursor = row
        if again:
            self.choose()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width  # next to the scrollbar
        line = y + self.scroll_offset.y
        if not self.rows:
            texts = wrapped(self.empty, width - 2)
            text = texts[line] if line < len(texts) else ""
            return self.paint_line((Span(f" {fit_text(text, width - 1)}", TextRole.DIM),), width)
        height = self.row_height(self.size.width)
        index, part = divmod(line, height)
        if index >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        row = self.rows[index]
        strip = self.paint_line(row.lines(width, height)[part], width)
        if index == self.cursor and row.key:
            strip = on_top(strip, 0, width, part_style(self, "rows--cursor"))
        return strip
