"""Inline markdown as spans."""

import re
from collections.abc import Iterable

from markdown_it.token import Token

from quarterdeck.tui.transcript_view.lines import Mark, Role, Span

_MARKS = {"strong": Mark.BOLD, "em": Mark.ITALIC, "s": Mark.STRIKE}
_SAFE_LINK = re.compile(r"(?:https?|mailto):[\x21-\x7e]{1,2000}", re.IGNORECASE)


def spans_of(tokens: Iterable[Token], role: Role = Role.TEXT) -> list[Span]:
    """The spans of an inline token's children. A hard break is a newline in the text."""
    spans: list[Span] = []
    marks = Mark.NONE
    link = ""
    for token in tokens:
        match token.type:
            case "link_open":
                link = safe_link(str(token.attrGet("href") or ""))
            case "link_close":
                link = ""
            case "code_inline":
                spans.append(Span(token.content, Role.INLINE, marks, link))
            case "softbreak":
                spans.append(Span(" ", role, marks, link))
            case "hardbreak":
                spans.append(Span("\n", role, marks))
            case "image":
                spans.append(Span(f"[image: {token.content or token.attrGet('src')}]", Role.DIM))
            case kind if kind.endswith("_open"):
                marks |= _MARKS.get(token.tag, Mark.NONE)
            case kind if kind.endswith("_close"):
                marks &= ~_MARKS.get(token.tag, Mark.NONE)
            case _:
                spans.append(Span(token.content, Role.LINK if link else role, marks, link))
    return [span for span in spans if span.text]


def safe_link(url: str) -> str:
    """The URL when a terminal may be given it, else nothing."""
    return url if _SAFE_LINK.fullmatch(url) else ""


def split_rows(spans: Iterable[Span]) -> list[list[Span]]:
    """The spans of each row, where hard breaks stand between rows."""
    rows: list[list[Span]] = [[]]
    for span in spans:
        if span.text == "\n":
            rows.append([])
        else:
            rows[-1].append(span)
    return rows
