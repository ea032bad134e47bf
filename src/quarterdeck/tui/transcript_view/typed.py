"""What a person typed: as it was typed, but fenced code as code."""

import re
from collections.abc import Iterator

from quarterdeck.tui.transcript_view.code import code_rows
from quarterdeck.tui.transcript_view.lines import Line, Role, Span
from quarterdeck.tui.transcript_view.wrap import wrap

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")


def typed_rows(text: str, width: int) -> list[Line]:
    """The rows of a message; code up to its closing fence, or to the end where there is none."""
    rows: list[Line] = []
    for source, info in _pieces(text):
        if info is None:
            rows += _typed(source, width)
        else:
            rows += code_rows(source, info, width)
    return rows


def _typed(text: str, width: int) -> list[Line]:
    return [row for part in text.split("\n") for row in wrap([Span(part, Role.PROMPT)], width)]


def _pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Text and code in turn, code with the words after its opening fence."""
    held: list[str] = []
    fence, info = "", ""
    for row in text.split("\n"):
        found = _FENCE.match(row)
        if fence and found and found[1].startswith(fence) and not found[2].strip():
            yield "\n".join(held), info
            held, fence = [], ""
        elif not fence and found:
            if held:
                yield "\n".join(held), None
            held, fence, info = [], found[1], found[2]
        else:
            held.append(row)
    if held or fence:
        yield "\n".join(held), info if fence else None
