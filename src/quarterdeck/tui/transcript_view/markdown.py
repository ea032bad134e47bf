"""Markdown as rows of spans."""

from collections.abc import Sequence
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from quarterdeck.tui.transcript_view.code import code_rows
from quarterdeck.tui.transcript_view.inline import spans_of, split_rows
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span, line
from quarterdeck.tui.transcript_view.table import table_rows
from quarterdeck.tui.transcript_view.wrap import indent, wrap

_LONGEST_INLINE = 20_000
"""Characters of a paragraph that are looked through for emphasis: hostile text can make it slow."""
_BLANK: Line = ()
_BULLET = line("\u2022 ", Role.DIM)
_CHECKS = {"[ ] ": line("\u25cb ", Role.DIM), "[x] ": line("\u2713 ", Role.DONE)}


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    # Inline text is parsed here, paragraph by paragraph, so that its length can be bounded.
    parser.core.ruler.disable(["inline"])
    return parser


def parse(source: str) -> list[Token]:
    """The block tokens of a text; inline ones are made when drawn."""
    return _parser().parse(source)


def draw(tokens: Sequence[Token], width: int) -> list[Line]:
    """The rows of block tokens."""
    for token in tokens:
        if token.type == "inline":
            token.children = _inline(token.content)
    return _siblings(SyntaxTreeNode(tokens).children, width, loose=True)


def _inline(text: str) -> list[Token]:
    if len(text) > _LONGEST_INLINE:
        return [Token("text", "", 0, content=text)]
    parser = _parser()
    children: list[Token] = []
    parser.inline.parse(text, parser, {}, children)
    return children


def _siblings(nodes: Sequence[SyntaxTreeNode], width: int, *, loose: bool) -> list[Line]:
    rows: list[Line] = []
    for node in nodes:
        drawn = _node(node, width)
        if rows and drawn and loose:
            rows.append(_BLANK)
        rows += drawn
    return rows


def _node(node: SyntaxTreeNode, width: int) -> list[Line]:
    match node.type:
        case "heading":
            return _heading(node, width)
        case "bullet_list" | "ordered_list":
            return _list(node, width)
        case "blockquote":
            bar = line("\u258e ", Role.QUOTE)
            return list(indent(_siblings(node.children, width - 2, loose=True), bar, bar))
        case "fence" | "code_block":
            return code_rows(node.content.removesuffix("\n"), node.info, width)
        case "hr":
            return [line("\u2500" * width, Role.RULE)]
        case "table":
            return table_rows(node, width)
        case "inline":
            return _text(node, width, Role.TEXT)
        case _ if node.children:
            return _siblings(node.children, width, loose=True)
        case _:
            return _plain(node.content, width)


def _plain(text: str, width: int) -> list[Line]:
    return [row for part in text.splitlines() for row in wrap([Span(part)], width)]


def _text(node: SyntaxTreeNode, width: int, role: Role, marks: Mark = Mark.NONE) -> list[Line]:
    children = node.token.children or [] if node.token else []
    spans = [span._replace(marks=span.marks | marks) for span in spans_of(children, role)]
    return [row for part in split_rows(spans) for row in wrap(part, width)]


def _heading(node: SyntaxTreeNode, width: int) -> list[Line]:
    marks = Mark.BOLD | Mark.UNDERLINE if node.tag == "h1" else Mark.BOLD
    return [row for child in node.children for row in _text(child, width, Role.HEADING, marks)]


def _list(node: SyntaxTreeNode, width: int) -> list[Line]:
    ordered = node.type == "ordered_list"
    start = int(str(node.attrs.get("start", 1))) if ordered else 1
    tight = _is_tight(node)
    rows: list[Line] = []
    for number, item in enumerate(node.children, start):
        mark = line(f"{number}. ", Role.DIM) if ordered else _checked(item) or _BULLET
        used = len(mark[0].text)
        drawn = _siblings(item.children, max(4, width - used), loose=not tight)
        if rows and not tight:
            rows.append(_BLANK)
        rows += indent(drawn or [_BLANK], mark, line(" " * used))
    return rows


def _checked(item: SyntaxTreeNode) -> Line | None:
    """The mark of a task list's item, taken from its text."""
    first = next((node for node in item.walk() if node.type == "text"), None)
    token = first.token if first else None
    mark = _CHECKS.get(token.content[:4].lower()) if token else None
    if token and mark:
        token.content = token.content[4:]
    return mark


def _is_tight(node: SyntaxTreeNode) -> bool:
    paragraphs = [c for item in node.children for c in item.children if c.type == "paragraph"]
    return all(paragraph.hidden for paragraph in paragraphs)
