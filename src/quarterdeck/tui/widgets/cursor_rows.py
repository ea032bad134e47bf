"""The base of lists that are painted by line: thousands of rows cost what the visible ones cost."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView

Key = TypeVar("Key", str, UUID)


class CursorRows(ScrollView, Generic[Key], can_focus=True):
    """Rows of one height with a cursor that stays on its row when others come or go.

    Each row has a key; one without is a heading, which the cursor passes by. Who derives from this
    paints the rows.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("home,g", "edge(0)", "First", show=False),
        Binding("end,G", "edge(-1)", "Last", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]

    virtual_size = Reactive(Size(0, 0), layout=False)
    """Without layout: a growing list must not lay the screen out again."""

    cursor: reactive[int] = reactive(0, repaint=False)

    class Highlighted(Message):
        """The cursor is on another row."""

        def __init__(self, rows: "CursorRows[Any]") -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> "CursorRows[Any]":
            """The list."""
            return self.rows

    class Chosen(Highlighted):
        """A row was clicked that had the cursor already, or opened with a key."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._keys: Sequence[Key | None] = ()
        self._able: list[int] = []
        """Rows that the cursor may be on."""

    def row_height(self, width: int) -> int:
        """Lines of a row."""
        return 1

    @property
    def chosen(self) -> Key | None:
        """The key of the row under the cursor."""
        return self._keys[self.cursor] or None if self.cursor < len(self._keys) else None

    def take_keys(self, keys: Sequence[Key | None], *, keep: bool = True) -> None:
        """Other rows. The cursor keeps its row or stays near where it was, or begins anew."""
        before = self.chosen
        self._keys = keys
        self._able = [line for line, key in enumerate(keys) if key]
        self._measure()
        at = next((line for line in self._able if keys[line] == before), None) if keep else None
        self.cursor = self._nearest(self.cursor if keep else 0) if at is None else at
        if not keep:
            self.scroll_to(0, 0, animate=False, force=True)
        self.refresh()
        if self.chosen != before:
            self.tell()

    def select(self, key: Key) -> None:
        """Puts the cursor on a row."""
        if key in self._keys:
            self.cursor = self._keys.index(key)

    def choose(self) -> None:
        """The row under the cursor is wanted."""
        if self.chosen:
            self.post_message(self.Chosen(self))

    def tell(self) -> None:
        """Says that the cursor is on another row."""
        self.post_message(self.Highlighted(self))

    def _nearest(self, line: int) -> int:
        return min(self._able, key=lambda one: abs(one - line), default=0)

    def _measure(self) -> None:
        height = self.row_height(self.size.width)
        self.virtual_size = Size(0, max(1, len(self._keys)) * height)

    def on_resize(self) -> None:
        self._measure()

    def watch_cursor(self, old: int, new: int) -> None:
        height, top = self.row_height(self.size.width), self.scroll_offset.y
        width = self.size.width
        self.refresh(*(Region(0, row * height - top, width, height) for row in (old, new)))
        if not self._keys:
            return
        # The headings above the first row are seen again when the cursor comes back to it.
        first = 0 if self._able and new == self._able[0] else new
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
        """To the row nearest to one further on; where there is none, the view alone moves."""
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
        self.cursor = min(near, key=lambda one: abs(one - to))

    def on_click(self, event: Click) -> None:
        row = (event.y + self.scroll_offset.y) // self.row_height(self.size.width)
        if row >= len(self._keys) or not self._keys[row]:
            return
        again = row == self.cursor
        self.cursor = row
        if again:
            self.choose()
