"""What a call shows of itself without being opened: the end of its output, the start of a change."""

from collections.abc import Sequence

from quarterdeck.transcript import DiffPart, Part, TextPart, ToolBlock
from quarterdeck.transcript.plain import unfenced
from quarterdeck.tui.transcript_view.changes import diff_rows
from quarterdeck.tui.transcript_view.lines import Line, Role, Span, line
from quarterdeck.tui.transcript_view.wrap import wrap_hard

_LARGEST_CHANGE = 40_000
"""Characters that are compared unasked."""


def glance(block: ToolBlock, width: int, most: int) -> list[Line]:
    """At most `most` rows; none when there is nothing to see yet."""
    parts = block.shown_parts
    changes = [part for part in parts if isinstance(part, DiffPart)]
    return _change(changes[0], width, most) if changes else _tail(parts, width, most)


def _tail(parts: Sequence[Part], width: int, most: int) -> list[Line]:
    rows: list[Line] = []
    for part in reversed(parts):
        if isinstance(part, TextPart) and len(rows) < most:
            rows = [*_last_rows(part.text, width, most - len(rows)), *rows]
    return rows


def _last_rows(text: str, width: int, most: int) -> list[Line]:
    text = unfenced(text).rstrip()
    if not text:
        return []
    rows: list[Line] = []
    for part in text.rsplit("\n", most)[-most:]:
        # Of a line without end only as much is folded as can be seen of it.
        rows += wrap_hard([Span(part[-width * most :], Role.DIM)], width)
    return rows[-most:]


def _change(part: DiffPart, width: int, most: int) -> list[Line]:
    if len(part.old or "") + len(part.new) > _LARGEST_CHANGE:
        return [line(part.path, Role.DIM)]
    rows = diff_rows(part, width)
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], line(f"\u2026 {len(rows) - most + 1:,} more lines", Role.DIM)]
