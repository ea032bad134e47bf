"""A list painted by line: hundreds of rows cost what the visible ones cost."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from textual.reactive import reactive
from textual.strip import Strip

from quarterdeck.tui.automations.pieces import CLASSES, CSS, Piece, Pieces
from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.widgets.cursor_rows import CursorRows
from quarterdeck.tui.widgets.placed import Placed


class Row(Protocol):
    """What one row shows; equal rows are not painted again."""

    @property
    def key(self) -> UUID: ...

    def lines(self, width: int) -> tuple[Pieces, ...]:
        """As many lines as every row has at this width."""
        ...


class RowList(CursorRows[UUID], Placed):
    """Rows of the same height with a cursor."""

    COMPONENT_CLASSES = {"rows--cursor", *CLASSES}
    DEFAULT_CSS = f"""
    RowList {{
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .rows--cursor {{ background: $panel; }}
        &:focus > .rows--cursor {{
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }}
        {CSS}
    }}
    """
    empty: reactive[str] = reactive("")
    """Shown when there are no rows."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()

    def show(self, rows: Sequence[Row]) -> None:
        """Shows rows in this order; the cursor stays on its row."""
        if list(rows) != list(self._rows) or not rows:
            self._rows = tuple(rows)
            self.take_keys([row.key for row in rows])

    def render_line(self, y: int) -> Strip:
        width, line = self.size.width, y + self.scroll_offset.y
        base = self.rich_style
        if not self._rows:
            words = self.empty.splitlines()
            text = words[line] if line < len(words) else ""
            return Pieces((Piece(f" {text}", "muted", -1),)).strip(self, width, base)
        index, part = divmod(line, self.row_height(width))
        if index >= len(self._rows):
            return Strip.blank(width, base)
        here = index == self.cursor
        if here:
            base += part_style(self, "rows--cursor")
        lines = self._rows[index].lines(width)
        return lines[part].strip(self, width, base, plain=here)
