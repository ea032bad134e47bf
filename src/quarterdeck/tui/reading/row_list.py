"""Rows to choose from, by line: thousands cost what the visible ones cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.reactive import reactive
from textual.strip import Strip

from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.reading.painted import Painted, on_top
from quarterdeck.tui.text import fit as fit_text
from quarterdeck.tui.transcript_view.lines import Line, Role, Span
from quarterdeck.tui.transcript_view.wrap import fit
from quarterdeck.tui.widgets.cursor_rows import CursorRows

NEAR = 10
"""Rows before the end from where on more are wanted."""


@dataclass(frozen=True)
class Row:
    """`key` names it to whoever listens; without one it is a heading. `note` stands at the right."""

    key: str
    words: Line
    note: Line = ()


class RowList(Painted, CursorRows[str]):
    """Rows in spans. The cursor stays on its row when others come or go."""

    empty: reactive[str] = reactive("")
    """Shown when there are no rows."""

    class EndNear(CursorRows.Highlighted):
        """The cursor comes to the end of what is there."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()

    @property
    def selected(self) -> str:
        """The key of the row under the cursor; empty when there is none."""
        return self.chosen or ""

    def show_rows(self, rows: Sequence[Row], *, keep: bool = True) -> None:
        """Shows other rows; the cursor keeps its row, or begins anew."""
        self._rows = rows
        keys = [row.key for row in rows]
        self.take_keys(keys, keep=keep and self.selected in keys)

    def tell(self) -> None:
        super().tell()
        if self._rows and self.cursor >= len(self._rows) - NEAR:
            self.post_message(self.EndNear(self))

    def on_mouse_scroll_down(self) -> None:
        """Who scrolls to the end wants more as well."""
        if self.scroll_offset.y + self.size.height >= len(self._rows) - NEAR:
            self.post_message(self.EndNear(self))

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width  # beside the scrollbar
        line = y + self.scroll_offset.y
        if not self._rows:
            texts = self.empty.splitlines()
            text = texts[line] if line < len(texts) else ""
            return self.paint_line((Span(f" {fit_text(text, width - 1)}", Role.DIM),), width)
        if line >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        row = self._rows[line]
        strip = self.paint_line(_in_width(row, width), width)
        if line == self.cursor and row.key:
            here = part_style(self, "painted--here")
            strip = on_top(strip, 0, width, here)
        return strip


def _in_width(row: Row, width: int) -> Line:
    note = sum(cell_len(span.text) for span in row.note)
    room = width - 1 - (note + 2 if note and note + 12 < width else 0)
    words = fit(row.words, max(1, room))
    if room == width - 1:
        return words
    used = sum(cell_len(span.text) for span in words)
    return (*words, Span(" " * (room - used + 2)), *row.note)
