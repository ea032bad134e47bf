"""Markdown as lines."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len

from quarterdeck.tui.addresses import cut_address
from quarterdeck.tui.kit.highlight import code_lines
from quarterdeck.tui.kit.spans import (
    BAR,
    Emphasis,
    Line,
    Span,
    TextRole,
    indent,
    line,
    wrap,
    wrap_hard,
)

if TYPE_CHECKING:  # the parser is loaded for the first text
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

_MARKS = {"strong": Emphasis.BOLD, "em": Emphasis.ITALIC, "s": Emphasis.STRIKE}
_ADDRESS = re.compile(r"https?://[!#-&(-;=?-_a-z~]+", re.IGNORECASE)
_SAFE_LINK = re.compile(r"(?:https?|mailto):[\x21-\x7e]{1,2000}", re.IGNORECASE)


def spans_of(tokens: "Iterable[Token]", role: TextRole = TextRole.TEXT) -> list[Span]:
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
            case "code_inline" if link:
                spans.append(Span(token.content, TextRole.INLINE, marks, link))
            case "code_inline":
                spans += linked(token.content, TextRole.INLINE, marks)
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
            case _ if link:
                spans.append(Span(token.content, TextRole.LINK, marks, link))
            case _:
                spans += linked(token.content, role, marks)
    return [span for span in spans if span.text]


def linked(text: str, role: TextRole, marks: Emphasis = Emphasis.NONE) -> Iterator[Span]:
    """Yield the spans of a text whose addresses are links."""
    at = 0
    for found in _ADDRESS.finditer(text):
        if address := safe_link(cut_address(found[0])):
            yield Span(text[at : found.start()], role, marks)
            yield Span(address, TextRole.LINK, marks, address)
            at = found.start() + len(address)
    yield Span(text[at:], role, marks)


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


def code_rows(source: str, info: str, width: int) -> list[Line]:
    """Return the rows of a fenced block, indented. `info`: the words after the opening fence."""
    language = info.split(maxsplit=1)[0] if info.strip() else ""
    rows = [row for code in code_lines(source, language) for row in wrap_hard(code, width - 2)]
    return list(indent(rows, line("  "), line("  ")))


_BETWEEN = Span(" \u2502 ", TextRole.RULE)
_MOST_COLUMNS = 60
_NARROWEST = 5
"""Smallest readable width of a column, in cells."""

_Cells = list[list[Span]]


def table_rows(node: "SyntaxTreeNode", width: int) -> list[Line]:
    """Return the rows of a table node."""
    table = [_cells(row) for part in node.children for row in part.children]
    count = min(_MOST_COLUMNS, max(len(row) for row in table))
    if width - 3 * (count - 1) < count * _NARROWEST:
        return _records(table, width)
    sides = _sides(node)
    natural = [max(_cell_width(row, column) for row in table) for column in range(count)]
    widths = _narrowed(natural, width - 3 * (count - 1))
    rows = _drawn(table[0], widths, sides, Emphasis.BOLD)
    rule: Line = (Span("\u2500\u253c\u2500".join("\u2500" * w for w in widths), TextRole.RULE),)
    body = [_drawn(cells, widths, sides, Emphasis.NONE) for cells in table[1:]]
    # Rows of one line each need nothing between them.
    is_folded = any(len(drawn) > 1 for drawn in body)
    rows.append(rule)
    for number, drawn in enumerate(body):
        rows += [rule, *drawn] if number and is_folded else drawn
    return rows


def _records(table: Sequence[_Cells], width: int) -> list[Line]:
    """Return a table too wide for the window: each row's cells in lines, after their headings."""
    rows: list[Line] = []
    nothing: list[Span] = []
    for cells in table[1:]:
        if rows:
            rows.append(())
        for head, cell in zip_longest(table[0], cells[:_MOST_COLUMNS], fillvalue=nothing):
            name = [span._replace(marks=span.marks | Emphasis.BOLD) for span in head]
            rows += wrap([*name, Span(": ", TextRole.DIM), *cell], width)
    return rows


def _sides(node: "SyntaxTreeNode") -> list[str]:
    """Return the alignment of each column, from the style of its heading."""
    heads = node.children[0].children[0].children
    return [str(head.attrs.get("style", "")).removeprefix("text-align:") for head in heads]


def _cells(row: "SyntaxTreeNode") -> _Cells:
    return [
        [span for child in cell.children if child.token for span in _spans(child)]
        for cell in row.children
    ]


def _spans(node: "SyntaxTreeNode") -> list[Span]:
    return spans_of(node.token.children or []) if node.token else []


def _cell_width(row: _Cells, column: int) -> int:
    if column >= len(row):
        return 2
    return max(2, sum(cell_len(span.text) for span in row[column]))


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that fit; the widest columns shrink first."""
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


def _drawn(
    cells: _Cells, widths: Sequence[int], sides: Sequence[str], marks: Emphasis
) -> list[Line]:
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


_LONGEST_INLINE = 20_000
"""Characters of a paragraph that are parsed for emphasis."""
_MOST_MARKS = 10_000
"""Characters with a meaning in the paragraphs of a text, at up to 0.03 ms each; later ones are plain text."""
_MARK = re.compile(r"[\]\[*_~`!<&\\]")
_DEEPEST = 50
"""Marks within each other in a paragraph. Drawing follows them, and each takes some of the stack."""
_MOST_LINES = 3_000
"""Lines of a text that are drawn as markdown, at up to 0.2 ms each; the rest is shown as it is."""
_MOST_CELLS = 5_000
"""Cells of the tables of a text, those that short rows lack included; a further table is shown as code."""
_UNFORMATTED = line("\u2026 the rest of this text is too long to be formatted", TextRole.DIM)
_BLANK: Line = ()
_BULLET = line("\u2022 ", TextRole.DIM)
_CHECKS = {"[ ] ": line("\u25cb ", TextRole.DIM), "[x] ": line("\u2713 ", TextRole.DONE)}


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    # Inline text is parsed here, paragraph by paragraph, so that its length can be bounded.
    parser.core.ruler.disable(["inline"])
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _table(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Parse a table, or make it code when it has too many cells: the rule `table` of the parser."""
    from markdown_it.rules_block import table

    if not table(state, start, end, True):
        return False
    if silent:
        return True
    stop = start
    while stop < end and not state.isEmpty(stop) and state.sCount[stop] >= state.blkIndent:
        stop += 1
    columns = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1]) + 1
    cells = state.env["cells"] = state.env.get("cells", 0) + columns * (stop - start)
    if cells <= _MOST_CELLS:
        return table(state, start, end, False)
    state.env["cells"] = cells - columns * (stop - start)
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, stop, state.blkIndent, False)
    token.map = [start, stop]
    state.line = stop
    return True


def parse(source: str) -> "list[Token]":
    """Return the block tokens of a text; inline ones are made when drawn."""
    return _parser().parse(source)


def draw(tokens: "Sequence[Token]", width: int) -> list[Line]:
    """Return the rows of block tokens."""
    from markdown_it.tree import SyntaxTreeNode

    marks = 0
    for token in tokens:
        if token.type == "inline":
            marks += len(_MARK.findall(token.content))
            token.children = _inline(token.content, is_plain=marks > _MOST_MARKS)
    return _siblings(SyntaxTreeNode(tokens).children, width, loose=True)


def _inline(text: str, *, is_plain: bool) -> "list[Token]":
    from markdown_it.token import Token

    if is_plain or len(text) > _LONGEST_INLINE:
        return [Token("text", "", 0, content=text)]
    parser = _parser()
    children: list[Token] = []
    parser.inline.parse(text, parser, {}, children)
    if max(accumulate(token.nesting for token in children), default=0) > _DEEPEST:
        return [Token("text", "", 0, content=text)]
    return children


def _siblings(nodes: "Sequence[SyntaxTreeNode]", width: int, *, loose: bool) -> list[Line]:
    rows: list[Line] = []
    for node in nodes:
        drawn = _node(node, width)
        if rows and drawn and loose:
            rows.append(_BLANK)
        rows += drawn
    return rows


def _node(node: "SyntaxTreeNode", width: int) -> list[Line]:
    match node.type:
        case "heading":
            return _heading(node, width)
        case "bullet_list" | "ordered_list":
            return _list(node, width)
        case "blockquote":
            bar = line(BAR, TextRole.QUOTE)
            return list(indent(_siblings(node.children, width - 2, loose=True), bar, bar))
        case "fence" | "code_block":
            return code_rows(node.content.removesuffix("\n"), node.info, width)
        case "hr":
            return [line("\u2500" * width, TextRole.RULE)]
        case "table":
            return table_rows(node, width)
        case "inline":
            return _text(node, width, TextRole.TEXT)
        case _ if node.children:
            return _siblings(node.children, width, loose=True)
        case _:
            return _plain(node.content, width)


def _plain(text: str, width: int) -> list[Line]:
    return [row for part in text.splitlines() for row in wrap([Span(part)], width)]


def _text(
    node: "SyntaxTreeNode", width: int, role: TextRole, marks: Emphasis = Emphasis.NONE
) -> list[Line]:
    children = node.token.children or [] if node.token else []
    spans = [span._replace(marks=span.marks | marks) for span in spans_of(children, role)]
    return [row for part in split_rows(spans) for row in wrap(part, width)]


def _heading(node: "SyntaxTreeNode", width: int) -> list[Line]:
    marks = Emphasis.BOLD | Emphasis.UNDERLINE if node.tag == "h1" else Emphasis.BOLD
    return [row for child in node.children for row in _text(child, width, TextRole.HEADING, marks)]


def _list(node: "SyntaxTreeNode", width: int) -> list[Line]:
    ordered = node.type == "ordered_list"
    start = int(str(node.attrs.get("start", 1))) if ordered else 1
    tight = _is_tight(node)
    rows: list[Line] = []
    for number, item in enumerate(node.children, start):
        mark = line(f"{number}. ", TextRole.DIM) if ordered else _checked(item) or _BULLET
        used = len(mark[0].text)
        drawn = _siblings(item.children, max(4, width - used), loose=not tight)
        if rows and not tight:
            rows.append(_BLANK)
        rows += indent(drawn or [_BLANK], mark, line(" " * used))
    return rows


def _checked(item: "SyntaxTreeNode") -> Line | None:
    """Return the mark of a task list's item, removed from its text."""
    first = next((node for node in item.walk() if node.type == "text"), None)
    token = first.token if first else None
    mark = _CHECKS.get(token.content[:4].lower()) if token else None
    if token and mark:
        token.content = token.content[4:]
    return mark


def _is_tight(node: "SyntaxTreeNode") -> bool:
    paragraphs = [c for item in node.children for c in item.children if c.type == "paragraph"]
    return all(paragraph.hidden for paragraph in paragraphs)


class Prose:
    """Rows of one text at one width.

    Everything before the last top-level block can no longer change when text is appended, so its
    rows are kept, and only the open last block is parsed again.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._last: tuple[str, list[Line]] = ("", [])
        self._frozen = ""
        self._rows: list[Line] = []
        self._rest = ""
        self._rest_rows: list[Line] = []

    def rows(self, text: str) -> list[Line]:
        """Return the rows of the whole text."""
        if text != self._last[0]:
            self._last = text, self._all_rows(text)
        return self._last[1]

    def _all_rows(self, text: str) -> list[Line]:
        if text.count("\n") <= _MOST_LINES:
            return self._formatted(text)
        end = 0
        for _ in range(_MOST_LINES):
            end = text.index("\n", end) + 1
        notice = wrap(_UNFORMATTED, self.width)
        return [*self._formatted(text[:end]), (), *notice, *self._unformatted(text[end:])]

    def _unformatted(self, text: str) -> list[Line]:
        """Return the rows of text as it is; whole lines are kept, as only the last one grows."""
        if not text.startswith(self._rest):
            self._rest, self._rest_rows = "", []
        end = text.rfind("\n") + 1
        self._rest_rows += _plain(text[len(self._rest) : end], self.width)
        self._rest = text[:end]
        return [*self._rest_rows, *_plain(text[end:], self.width)]

    def _formatted(self, text: str) -> list[Line]:
        if not text.startswith(self._frozen):
            self._frozen, self._rows = "", []
        tail = text[len(self._frozen) :]
        tokens = parse(tail)
        last = max((i for i, token in enumerate(tokens) if _begins(token)), default=0)
        if last:
            start = (tokens[last].map or [0])[0]
            self._rows = self._joined(draw(tokens[:last], self.width))
            self._frozen += "".join(row + "\n" for row in tail.split("\n")[:start])
        return self._joined(draw(tokens[last:], self.width))

    def _joined(self, rows: list[Line]) -> list[Line]:
        if self._rows and rows:
            return [*self._rows, (), *rows]
        return self._rows or rows


def _begins(token: "Token") -> bool:
    return token.level == 0 and token.nesting >= 0
