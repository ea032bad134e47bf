"""Inline markdown as spans."""

import re
from collections.abc import Iterable

from markdown_it.token import Token

from quarterdeck.tui.kit.spans import Emphasis, Span, TextRole

_MARKS = {"strong": Emphasis.BOLD, "em": Emphasis.ITALIC, "s": Emphasis.STRIKE}
_SAFE_LINK = re.compile(r"(?:https?|mailto):[\x21-\x7e]{1,2000}", re.IGNORECASE)


def spans_of(tokens: Iterable[Token], role: TextRole = TextRole.TEXT) -> list[Span]:
    """Return the spans of an inline token's children. A hard break is a newline in the text."""
    spans: list[Span] = []
    marks = Emphasis.NONE
    link = ""
    for token in tokens:
        match token.type:
            case "link_open":
                link = safe_link(str(token.attrGet("href") or ""))
            case "link_close":
                link = ""
            case "code_inline":
                spans.append(Span(token.content, TextRole.INLINE, marks, link))
            case "softbreak":
                spans.append(Span(" ", role, marks, link))
            case "hardbreak":
                spans.append(Span("\n", role, marks))
            case "image":
                spans.append(
                    Span(f"[image: {token.content or token.attrGet('src')}]", TextRole.DIM)
                )
            case kind if kind.endswith("_open"):
                marks |= _MARKS.get(token.tag, Emphasis.NONE)
            case kind if kind.endswith("_close"):
                marks &= ~_MARKS.get(token.tag, Emphasis.NONE)
            case _:
                spans.append(Span(token.content, TextRole.LINK if link else role, marks, link))
    return [span for span in spans if span.text]


def safe_link(url: str) -> str:
    """Return the URL when it is safe for a terminal, else nothing."""
    return url if _SAFE_LINK.fullmatch(url) else ""


def split_rows(spans: Iterable[Span]) -> list[list[Span]]:
    """Return the spans of each row, split at hard breaks."""
    rows: list[list[Span]] = [[]]
    for span in spans:
        if span.text == "\n":
            rows.append([])
        else:
            rows[-1].append(span)
    return rows
