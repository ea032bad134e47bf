"""The change of a file as rows."""

from quarterdeck.transcript import DiffPart
from quarterdeck.transcript.plain import diff_lines
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span, line
from quarterdeck.tui.transcript_view.wrap import fit, wrap_hard

_LONGEST_ROW = 4_000
_LONGEST_DIFF = 200_000


def diff_rows(part: DiffPart, width: int) -> list[Line]:
    """The file and how many lines came and went, then the unified diff."""
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
        rows += wrap_hard([Span(change[:_LONGEST_ROW], _role(change))], width)
    return rows


def _role(change: str) -> Role:
    match change[:1]:
        case "+":
            return Role.ADDED
        case "-":
            return Role.REMOVED
        case "@":
            return Role.DIM
        case _:
            return Role.CODE
