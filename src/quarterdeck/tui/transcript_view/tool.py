"""Tool calls: one line, and as much of their content as their shape shows."""

from rich.cells import cell_len

from quarterdeck.transcript import DiffPart, Part, TerminalPart, TextPart, ToolBlock, ToolState
from quarterdeck.transcript.plain import unfenced
from quarterdeck.transcript.words import duration_text
from quarterdeck.tui.transcript_view.changes import diff_rows
from quarterdeck.tui.transcript_view.glance import glance
from quarterdeck.tui.transcript_view.lines import Line, Role, Span, line
from quarterdeck.tui.transcript_view.shapes import Shape
from quarterdeck.tui.transcript_view.wrap import fit, indent, wrap_hard

LIVE_ROWS = 8
"""Rows of its output that a running call shows."""
REASON_ROWS = 10
"""Rows of its output that a failed call shows."""
_SHORTEST = 0.05
"""Seconds: a call that took less is not worth a figure."""
_TAIL = 200
"""Rows of output shown: the end of it is what tells how it went."""
_LONGEST_ROW = 4_000

_SIGNS = {
    ToolState.PENDING: ("\u25cb", Role.DIM),
    ToolState.IN_PROGRESS: ("\u25cf", Role.WORKING),
    ToolState.COMPLETED: ("\u2713", Role.DONE),
    ToolState.FAILED: ("\u2717", Role.FAILED),
    ToolState.STOPPED: ("\u25a0", Role.DIM),
}
_MARGIN = line("    ")


def tool_rows(block: ToolBlock, width: int, shape: Shape, target: str) -> list[Line]:
    """The rows of a tool call."""
    head = _head(block, width, opened=shape is Shape.OPEN, target=target)
    return [head, *indent(_shown(block, width - 4, shape), _MARGIN, _MARGIN)]


def _shown(block: ToolBlock, width: int, shape: Shape) -> list[Line]:
    match shape:
        case Shape.FOLDED:
            return []
        case Shape.LIVE:
            return glance(block, width, LIVE_ROWS)
        case Shape.REASON:
            return glance(block, width, REASON_ROWS)
        case Shape.OPEN:
            return _content(block, width)


def _head(block: ToolBlock, width: int, *, opened: bool, target: str) -> Line:
    sign, role = _SIGNS[block.state]
    right = _right(block)
    room = width - sum(cell_len(span.text) for span in right)
    left = fit(
        (
            Span("\u25be " if opened else "\u25b8 ", Role.DIM, target=target),
            Span(f"{sign} ", role, target=target),
            Span(block.name, Role.TEXT, target=target),
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
        spans += (Span(f"  exit {block.exit_code}", Role.FAILED),)
    if block.duration is not None and block.duration >= _SHORTEST:
        spans += (Span(f"  {duration_text(block.duration):>6}", Role.DIM),)
    return spans


def _content(block: ToolBlock, width: int) -> list[Line]:
    rows: list[Line] = []
    if block.command and block.command != block.name:
        rows += wrap_hard([Span(f"$ {block.command}", Role.CODE)], width)
    for place in block.locations or ():
        where = place.path if place.line is None else f"{place.path}:{place.line}"
        rows.append(fit(line(where, Role.DIM), width))
    for part in block.shown_parts:
        rows += _part(part, width)
    if not rows and block.input_text:
        rows += _output(block.input_text, width, Role.DIM)
    return rows or [line("no output", Role.DIM)]


def _part(part: Part, width: int) -> list[Line]:
    match part:
        case TextPart():
            return _output(unfenced(part.text), width, Role.CODE)
        case DiffPart():
            return diff_rows(part, width)
        case TerminalPart():
            return [line(f"[terminal {part.terminal_id}]", Role.DIM)]


def _output(text: str, width: int, role: Role) -> list[Line]:
    if not text:
        return []
    above = max(0, text.count("\n") + 1 - _TAIL)
    tail = text.rsplit("\n", _TAIL)[-_TAIL:] if above else text.split("\n")
    rows = [row for part in tail for row in wrap_hard([Span(part[:_LONGEST_ROW], role)], width)]
    above += max(0, len(rows) - _TAIL)
    head = [line(f"\u2026 {above:,} more lines above", Role.DIM)] if above else []
    return head + rows[-_TAIL:]
