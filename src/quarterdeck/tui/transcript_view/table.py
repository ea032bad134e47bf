"""Markdown tables: columns as wide as their text, narrowed and folded when the view is too small."""

from collections.abc import Sequence
from itertools import zip_longest

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len

from quarterdeck.tui.transcript_view.inline import spans_of
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span
from quarterdeck.tui.transcript_view.wrap import wrap

_BETWEEN = Span(" \u2502 ", Role.RULE)
_MOST_COLUMNS = 60

_Cells = list[list[Span]]


def table_rows(node: SyntaxTreeNode, width: int) -> list[Line]:
    """The rows of a table node."""
    table = [_cells(row) for part in node.children for row in part.children]
    count = min(_MOST_COLUMNS, max(len(row) for row in table))
    natural = [max(_cell_width(row, column) for row in table) for column in range(count)]
    widths = _narrowed(natural, max(count * 2, width - 3 * (count - 1)))
    rows = _drawn(table[0], widths, Mark.BOLD)
    rows.append((Span("\u2500\u253c\u2500".join("\u2500" * w for w in widths), Role.RULE),))
    for cells in table[1:]:
        rows += _drawn(cells, widths, Mark.NONE)
    return rows


def _cells(row: SyntaxTreeNode) -> _Cells:
    return [
        [span for child in cell.children if child.token for span in _spans(child)]
        for cell in row.children
    ]


def _spans(node: SyntaxTreeNode) -> list[Span]:
    return spans_of(node.token.children or []) if node.token else []


def _cell_width(row: _Cells, column: int) -> int:
    if column >= len(row):
        return 2
    return max(2, sum(cell_len(span.text) for span in row[column]))


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """The widest columns give way first."""
    total = sum(widths)
    if total <= room:
        return list(widths)
    low, high = 2, max(widths)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(width, middle) for width in widths) <= room:
            low = middle
        else:
            high = middle - 1
    return [min(width, low) for width in widths]


def _drawn(cells: _Cells, widths: Sequence[int], marks: Mark) -> list[Line]:
    folded = [
        wrap([span._replace(marks=span.marks | marks) for span in cell], width)
        for cell, width in zip(cells, widths, strict=False)
    ]
    return [_row(parts, widths) for parts in zip_longest(*folded, fillvalue=())]


def _row(parts: Sequence[Line], widths: Sequence[int]) -> Line:
    spans: list[Span] = []
    for column, width in enumerate(widths):
        part = parts[column] if column < len(parts) else ()
        used = sum(cell_len(span.text) for span in part)
        spans += part
        if column < len(widths) - 1:
            spans += (Span(" " * max(0, width - used)), _BETWEEN)
    return tuple(spans)
