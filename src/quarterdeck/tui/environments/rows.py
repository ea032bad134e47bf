"""A list of lines with columns: what is not seen costs nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from quarterdeck.tui.part_style import part_style
from quarterdeck.tui.text import fit
from quarterdeck.tui.widgets.cursor_rows import CursorRows

GAP = 1


@dataclass(frozen=True)
class Row:
    """One line. One without a key cannot be chosen: a heading, or text."""

    key: str
    cells: tuple[str, ...]
    style: str = "plain"
    """`plain`, `muted`, `heading`, `warning` or `error`."""


class RowList(CursorRows[str]):
    """Lines of equal columns; the last column takes what room is left."""

    COMPONENT_CLASSES = {
        "rows--cursor",
        "rows--muted",
        "rows--heading",
        "rows--warning",
        "rows--error",
    }
    DEFAULT_CSS = """
    RowList {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .rows--cursor { background: $block-cursor-blurred-background; }
        &:focus > .rows--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
        & > .rows--muted { color: $text-muted; }
        & > .rows--heading { color: $text-primary; text-style: bold; }
        & > .rows--warning { color: $text-warning; }
        & > .rows--error { color: $text-error; }
    }
    """

    def __init__(self, *widths: float, id: str | None = None) -> None:
        """Widths of all columns but the last: cells, or below 1 a share of the width."""
        super().__init__(id=id)
        self._widths = widths
        self._rows: tuple[Row, ...] = ()

    def show(self, rows: Sequence[Row]) -> None:
        """Shows these rows; the cursor stays on its row, or near where it was."""
        if tuple(rows) != self._rows:
            self._rows = tuple(rows)
            self.take_keys([row.key for row in rows])

    def _cells(self, row: Row, width: int) -> str:
        parts: list[str] = []
        left = width - 1
        for place, text in enumerate(row.cells):
            last = place == len(row.cells) - 1
            asked = 0 if place >= len(self._widths) else self._widths[place]
            room = left if last else min(left, int(asked * width) if asked < 1 else int(asked))
            parts.append(fit(text, room))
            left -= room + GAP
        return " " + (" " * GAP).join(parts)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        line = y + self.scroll_offset.y
        base = self.rich_style
        if line >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[line]
        style = base + self._style_of(row, line)
        text = self._cells(row, width)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _style_of(self, row: Row, line: int) -> Style:
        if line == self.cursor and row.key:
            return part_style(self, "rows--cursor")
        if row.style == "plain":
            return Style()
        return part_style(self, f"rows--{row.style}")
