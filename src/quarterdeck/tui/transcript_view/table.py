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
_NARROWEST = 5
"""Cells of a column in which words can still be read."""

_Cells = list[list[Span]]


def table_rows(node: SyntaxTreeNode, width: int) -> list[Line]:
    """The rows of a table node."""
    table = [_cells(row) for part in node.children for row in part.children]
    count = min(_MOST_COLUMNS, max(len(row) for row in table))
    if width - 3 * (count - 1) < count * _NARROWEST:
        return _records(table, width)
    sides = _sides(node)
    natural = [max(_cell_width(row, column) for row in table) for column in range(count)]
    widths = _narrowed(natural, width - 3 * (count - 1))
    rows = _drawn(table[0], widths, sides, Mark.BOLD)
    rule: Line = (Span("\u2500\u253c\u2500".join("\u2500" * w for w in widths), Role.RULE),)
    body = [_drawn(cells, widths, sides, Mark.NONE) for cells in table[1:]]
    # Rows of one line each need nothing between them.
    is_folded = any(len(drawn) > 1 for drawn in body)
    rows.append(rule)
    for number, drawn in enumerate(body):
        rows += [rule, *drawn] if number and is_folded else drawn
    return rows


def _records(table: Sequence[_Cells], width: int) -> list[Line]:
    """Too many columns for the window: each row's cells below one another, after their headings."""
    rows: list[Line] = []
    nothing: list[Span] = []
    for cells in table[1:]:
        if rows:
            rows.append(())
        for head, cell in zip_longest(table[0], cells[:_MOST_COLUMNS], fillvalue=nothing):
            name = [span._replace(marks=span.marks | Mark.BOLD) for span in head]
            rows += wrap([*name, Span(": ", Role.DIM), *cell], width)
    return rows


def _sides(node: SyntaxTreeNode) -> list[str]:
    """How each column is set: the style of its heading."""
    heads = node.children[0].children[0].children
    return [str(head.attrs.get("style", "")).removeprefix("text-align:") for head in heads]


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


def _drawn(cells: _Cells, widths: Sequence[int], sides: Sequence[str], marks: Mark) -> list[Line]:
    folded = [
        wrap([span._replace(marks=span.marks | marks) for span in cell], width)
        for cell, width in zip(cells, widths, strict=False)
    ]
    return [_row(parts, widths, sides) for parts in zip_longest(*folded, fillvalue=())]


def _row(parts: Sequence[Line], widths: Sequence[int], sides: Sequence[str]) -> Line:
    spans: list[Span] = []
    for column, (width, side) in enumerate(zip(widths, sides, strict=False)):
        part = parts[column] if column < len(parts) else ()
        free = max(0, width - sum(cell_len(span.text) for span in part))
        left = {"right": free, "center": free // 2}.get(side, 0)
        spans += (Span(" " * left), *part, Span(" " * (free - left)), _BETWEEN)
    return tuple(span for span in spans[:-1] if span.text)
