"""Tool calls: one line, and as much of their content as their shape shows."""

from rich.cells import cell_len

from quarterdeck.transcript import DiffPart, Part, TerminalPart, TextPart, ToolBlock, ToolState
from quarterdeck.transcript.blocks import duration_text
from quarterdeck.transcript.export import unfenced
from quarterdeck.tui.kit.spans import Line, Span, TextRole, fit, indent, line, wrap_hard
from quarterdeck.tui.transcript_view.blocks import diff_rows
from quarterdeck.tui.transcript_view.shapes import BlockShape, glance

LIVE_ROWS = 8
"""Rows of its output that a running call shows."""
REASON_ROWS = 10
"""Rows of its output that a failed call shows."""
_SHORTEST = 0.05
"""Seconds; the duration of a shorter call is not shown."""
_TAIL = 200
"""Rows of output shown: its end says how it went."""
_LONGEST_ROW = 4_000

_SIGNS = {
    ToolState.PENDING: ("\u25cb", TextRole.DIM),
    ToolState.IN_PROGRESS: ("\u25cf", TextRole.WORKING),
    ToolState.COMPLETED: ("\u2713", TextRole.DONE),
    ToolState.FAILED: ("\u2717", TextRole.FAILED),
    ToolState.STOPPED: ("\u25a0", TextRole.DIM),
}
_MARGIN = line("    ")


def tool_rows(block: ToolBlock, width: int, shape: BlockShape, target: str) -> list[Line]:
    """Return the rows of a tool call."""
    head = _head(block, width, opened=shape is BlockShape.OPEN, target=target)
    return [head, *indent(_shown(block, width - 4, shape), _MARGIN, _MARGIN)]


def _shown(block: ToolBlock, width: int, shape: BlockShape) -> list[Line]:
    match shape:
        case BlockShape.FOLDED:
            return []
        case BlockShape.LIVE:
            return glance(block, width, LIVE_ROWS)
        case BlockShape.REASON:
            return glance(block, width, REASON_ROWS)
        case BlockShape.OPEN:
            return _content(block, width)


def _head(block: ToolBlock, width: int, *, opened: bool, target: str) -> Line:
    sign, role = _SIGNS[block.state]
    right = _right(block)
    room = width - sum(cell_len(span.text) for span in right)
    left = fit(
        (
            Span("\u25be " if opened else "\u25b8 ", TextRole.DIM, target=target),
            Span(f"{sign} ", role, target=target),
            Span(block.name, TextRole.TEXT, target=target),
        ),
        max(4, room),
    )
    if not right:
        return left
    gap = max(0, room - sum(cell_len(span.text) for span in left))
    return fit((*left, Span(" " * gap, target=target), *right), width)


def _right(block: ToolBlock) -> Line:
    spans: Line = ()
    if block.exit_code:
        spans += (Span(f"  exit {block.exit_code}", TextRole.FAILED),)
    if block.duration is not None and block.duration >= _SHORTEST:
        spans += (Span(f"  {duration_text(block.duration):>6}", TextRole.DIM),)
    return spans


def _content(block: ToolBlock, width: int) -> list[Line]:
    rows: list[Line] = []
    if block.command and block.command != block.name:
        rows += wrap_hard([Span(f"$ {block.command}", TextRole.CODE)], width)
    for place in block.locations or ():
        where = place.path if place.line is None else f"{place.path}:{place.line}"
        rows.append(fit(line(where, TextRole.DIM), width))
    for part in block.shown_parts:
        rows += _part(part, width)
    if not rows and block.input_text:
        rows += _output(block.input_text, width, TextRole.DIM)
    return rows or [line("no output", TextRole.DIM)]


def _part(part: Part, width: int) -> list[Line]:
    match part:
        case TextPart():
            return _output(unfenced(part.text), width, TextRole.CODE)
        case DiffPart():
            return diff_rows(part, width)
        case TerminalPart():
            return [line(f"[terminal {part.terminal_id}]", TextRole.DIM)]


def _output(text: str, width: int, role: TextRole) -> list[Line]:
    if not text:
        return []
    above = max(0, text.count("\n") + 1 - _TAIL)
    tail = text.rsplit("\n", _TAIL)[-_TAIL:] if above else text.split("\n")
    rows = [row for part in tail for row in wrap_hard([Span(part[:_LONGEST_ROW], role)], width)]
    above += max(0, len(rows) - _TAIL)
    head = [line(f"\u2026 {above:,} more lines above", TextRole.DIM)] if above else []
    return head + rows[-_TAIL:]
