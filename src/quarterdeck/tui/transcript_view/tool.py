"""Tool calls: one line, and their content when open."""

from rich.cells import cell_len

from quarterdeck.transcript import DiffPart, Part, TerminalPart, TextPart, ToolBlock, ToolState
from quarterdeck.transcript.plain import diff_lines
from quarterdeck.transcript.words import duration_text
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span, line
from quarterdeck.tui.transcript_view.wrap import fit, indent, wrap_hard

_TAIL = 200
"""Rows of output shown: the end of it is what tells how it went."""
_LONGEST_ROW = 4_000
_LONGEST_DIFF = 200_000

_SIGNS = {
    ToolState.PENDING: ("\u25cb", Role.DIM),
    ToolState.IN_PROGRESS: ("\u25cf", Role.WORKING),
    ToolState.COMPLETED: ("\u2713", Role.DONE),
    ToolState.FAILED: ("\u2717", Role.FAILED),
    ToolState.STOPPED: ("\u25a0", Role.DIM),
}
_MARGIN = line("    ")


def tool_rows(block: ToolBlock, width: int, *, opened: bool, target: str) -> list[Line]:
    """The rows of a tool call."""
    head = _head(block, width, opened=opened, target=target)
    return [head, *indent(_content(block, width - 4), _MARGIN, _MARGIN)] if opened else [head]


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
    if block.exit_code is not None:
        role = Role.FAILED if block.exit_code else Role.DIM
        spans += (Span(f"  exit {block.exit_code}", role),)
    if block.duration is not None:
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
            return _output(_unfenced(part.text), width, Role.CODE)
        case DiffPart():
            return _diff(part, width)
        case TerminalPart():
            return [line(f"[terminal {part.terminal_id}]", Role.DIM)]


def _unfenced(text: str) -> str:
    """Several agents put the output of a command into a fence."""
    text = text.strip("\n")
    if not (text.startswith("```") and text.endswith("\n```")):
        return text
    return text.partition("\n")[2].removesuffix("```").removesuffix("\n")


def _output(text: str, width: int, role: Role) -> list[Line]:
    if not text:
        return []
    above = max(0, text.count("\n") + 1 - _TAIL)
    tail = text.rsplit("\n", _TAIL)[-_TAIL:] if above else text.split("\n")
    rows = [row for part in tail for row in wrap_hard([Span(part[:_LONGEST_ROW], role)], width)]
    above += max(0, len(rows) - _TAIL)
    head = [line(f"\u2026 {above:,} more lines above", Role.DIM)] if above else []
    return head + rows[-_TAIL:]


def _diff(part: DiffPart, width: int) -> list[Line]:
    if len(part.old or "") + len(part.new) > _LONGEST_DIFF:
        return [line(f"{part.path}: too large to compare here", Role.DIM)]
    changes = diff_lines(part)
    added = sum(row.startswith("+") for row in changes)
    removed = sum(row.startswith("-") for row in changes)
    head: Line = (
        Span(part.path, Role.HEADING, Mark.BOLD),
        Span(f"  +{added}", Role.ADDED),
        Span(f" \u2212{removed}", Role.REMOVED),
    )
    rows = [fit(head, width)]
    for change in changes:
        rows += wrap_hard([Span(change[:_LONGEST_ROW], _diff_role(change))], width)
    return rows


def _diff_role(change: str) -> Role:
    match change[:1]:
        case "+":
            return Role.ADDED
        case "-":
            return Role.REMOVED
        case "@":
            return Role.DIM
        case _:
            return Role.CODE
