"""Texts before they have colors: spans that name a role, and lines of them.

Drawing has two steps: content is laid out as `Line`s of `Span`s; the painter turns
roles into the theme's styles. So layout is tested without a screen.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Flag, StrEnum, auto
from typing import Final, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from quarterdeck.tui.text import MOST_IN_CELL

TAB = 4
BAR = "\u258e "
"""Before the rows of a quote."""


class TextRole(StrEnum):
    """The meaning of a text; each has a component class `transcript--<role>`."""

    TEXT = "text"
    USER = "user"
    AGENT = "agent"
    PROMPT = "prompt"
    DIM = "dim"
    HEADING = "heading"
    CODE = "code"
    INLINE = "inline"
    QUOTE = "quote"
    RULE = "rule"
    LINK = "link"
    WORKING = "working"
    COMING = "coming"
    DONE = "done"
    FAILED = "failed"
    ASKING = "asking"
    WARNING = "warning"
    CHOSEN = "chosen"
    ADDED = "added"
    REMOVED = "removed"
    KEYWORD = "keyword"
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    NAME = "name"


class Emphasis(Flag):
    """Emphasis on top of a role."""

    NONE = 0
    BOLD = auto()
    ITALIC = auto()
    STRIKE = auto()
    UNDERLINE = auto()


class Span(NamedTuple):
    """Text of one look, without newlines. `target`: the effect of a click (see `view`)."""

    text: str
    role: TextRole = TextRole.TEXT
    marks: Emphasis = Emphasis.NONE
    link: str = ""
    target: str = ""


Line = tuple[Span, ...]
"""One row."""


def line(text: str, role: TextRole = TextRole.TEXT, marks: Emphasis = Emphasis.NONE) -> Line:
    """Return a row of one look."""
    return (Span(text, role, marks),)


def untabbed(text: str) -> str:
    """Replace tabs by spaces, to the next stop."""
    return text.expandtabs(TAB) if "\t" in text else text


def plain(lines: Iterable[Line]) -> list[str]:
    """Return the rows' text."""
    return ["".join(span.text for span in row) for row in lines]


_WORDS = re.compile(r"[^\S\u00a0]+|[^\s]+|\s+")
_NOT_BLANK = re.compile("[^ ]")


def wrap(spans: Iterable[Span], width: int) -> list[Line]:
    """Return rows of at most `width` cells, broken between words; longer words are cut."""
    return _laid_out(spans, width, _Rows.words)


def wrap_hard(spans: Iterable[Span], width: int) -> list[Line]:
    """Return rows cut at exactly the width: code and output, where spaces count."""
    return _laid_out(spans, width, _Rows.cut)


def _laid_out(
    spans: Iterable[Span], width: int, break_up: "Callable[[_Rows, Span, str], None]"
) -> list[Line]:
    rows = _Rows(max(2, width))
    for span in spans:
        text = untabbed(span.text)
        if rows.used + len(text) <= rows.width and text.isascii():
            rows.put(span, text, len(text))
        else:
            break_up(rows, span, text)
    return rows.finish()


def indent(rows: Iterable[Line], first: Line, rest: Line) -> Iterator[Line]:
    """Put a marker before the first row and spaces of its width before the others."""
    for number, row in enumerate(rows):
        yield (rest if number else first) + row


def fit(spans: Line, width: int) -> Line:
    """Return one row: cut with an ellipsis when it is too long."""
    most = MOST_IN_CELL * max(1, width)
    if any(len(span.text) > most for span in spans):
        spans = tuple(span._replace(text=span.text[:most]) for span in spans)
    if sum(cell_len(span.text) for span in spans) <= width:
        return spans
    kept: list[Span] = []
    left = max(0, width - 1)
    for span in spans:
        size = cell_len(span.text)
        if size > left:
            kept.append(span._replace(text=set_cell_size(span.text, left)))
            break
        kept.append(span)
        left -= size
    return (*kept, Span("\u2026", TextRole.DIM))


class _Rows:
    def __init__(self, width: int) -> None:
        self.width = width
        self._rows: list[Line] = []
        self._row: list[Span] = []
        self.used = 0

    def put(self, span: Span, text: str, cells: int) -> None:
        if not text:
            return
        if self._row and self._row[-1][1:] == span[1:]:
            self._row[-1] = span._replace(text=self._row[-1].text + text)
        else:
            self._row.append(span._replace(text=text))
        self.used += cells

    def words(self, span: Span, text: str) -> None:
        if text.isascii() and text.isprintable():
            self._slices(span, text)
            return
        for word in _WORDS.findall(text):
            self._word(span, word)

    def _slices(self, span: Span, text: str) -> None:
        """Lay out text a row at a time, for text whose characters take one cell and whose words are separated by blanks only.

        A long paragraph that grows is laid out again in each frame.
        """
        at = 0
        while (end := at + self.width - self.used) < len(text):
            if text[end] == " ":  # the blanks there do not fit, and are left out
                kept = text[at:end].rstrip(" ")
                self.put(span, kept, len(kept))
                self._break()
                after = _NOT_BLANK.search(text, end)
                at = after.start() if after else len(text)
                continue
            word = max(text.rfind(" ", at, end) + 1, at)
            self.put(span, text[at:word], word - at)
            ended = text.find(" ", end)
            ended = len(text) if ended < 0 else ended
            if ended - word > self.width:
                self.cut(span, text[word:ended])
                at = ended
            else:
                self._break()
                at = word
        self.put(span, text[at:], len(text) - at)

    def _word(self, span: Span, word: str) -> None:
        cells = cell_len(word)
        if self.used + cells <= self.width:
            self.put(span, word, cells)
        elif word.isspace():
            self._break()
        elif cells > self.width or (cells > len(word) and cells > self.width - self.used):
            # Scripts without spaces break anywhere, so the row is filled first.
            self.cut(span, word)
        else:
            self._break()
            self.put(span, word, cells)

    def cut(self, span: Span, text: str) -> None:
        left = self.width - self.used
        # A row holds few characters, so only as many are scanned.
        first = (chop_cells(text[: left * 4 + 8], left) or [""])[0] if left > 1 else ""
        if cell_len(first) > left:
            first = ""
        self.put(span, first, cell_len(first))
        for piece in chop_cells(text[len(first) :], self.width):
            self._break()
            self.put(span, piece, cell_len(piece))

    def _break(self) -> None:
        if self._row and self._row[-1].text.endswith(" "):
            last = self._row[-1]
            self._row[-1] = last._replace(text=last.text.rstrip(" "))
        self._rows.append(tuple(span for span in self._row if span.text))
        self._row = []
        self.used = 0

    def finish(self) -> list[Line]:
        if self._row or not self._rows:
            self._rows.append(tuple(self._row))
        return self._rows


Found = list[tuple[int, int]]


def spans_in(text: str, wanted: str) -> Found:
    """Return the matches of a text in a row, as pairs of start and end.

    Lowercase letters match both cases; an uppercase letter matches only itself.
    """
    if not wanted:
        return []
    if wanted == wanted.lower():
        lowered = text.lower()
        # Some letters have another length in lowercase: the positions would be wrong.
        text = lowered if len(lowered) == len(text) else text
    places: Found = []
    at = text.find(wanted)
    while at >= 0:
        places.append((at, at + len(wanted)))
        at = text.find(wanted, at + len(wanted))
    return places


def next_row(
    text_of: Callable[[int], str], count: int, wanted: str, start: int, step: int
) -> int | None:
    """Return the nearest row with the text, from `start` on in a direction, wrapping around."""
    for number in range(count):
        row = (start + number * step) % count
        if spans_in(text_of(row), wanted):
            return row
    return None


StyleOf = Callable[[TextRole], Style]


class SpanPainter:
    """Makes strips; styles are cached until `reset`."""

    def __init__(self, style_of: StyleOf) -> None:
        self._style_of = style_of
        self._styles: dict[tuple[TextRole, Emphasis, str], Style] = {}

    def reset(self) -> None:
        """Forget the styles of the previous theme."""
        self._styles.clear()

    def strip(self, row: Line, width: int, margin: int) -> Strip:
        """Return a row of `width` cells, `margin` blanks before it."""
        blank = self.style(TextRole.TEXT)
        segments = [Segment(" " * margin, blank)] if margin else []
        segments += [
            Segment(span.text, self.style(span.role, span.marks, span.link)) for span in row
        ]
        return Strip(segments).adjust_cell_length(width, blank)

    def style(self, role: TextRole, marks: Emphasis = Emphasis.NONE, link: str = "") -> Style:
        """Return the style of a role with emphasis."""
        key = (role, marks, link)
        style = self._styles.get(key)
        if style is None:
            style = self._styles[key] = self._style_of(role) + _emphasis(marks, link)
        return style


def _emphasis(marks: Emphasis, link: str) -> Style:
    return Style(
        bold=True if Emphasis.BOLD in marks else None,
        italic=True if Emphasis.ITALIC in marks else None,
        strike=True if Emphasis.STRIKE in marks else None,
        underline=True if Emphasis.UNDERLINE in marks else None,
        link=link or None,
    )


ROLE_COMPONENTS: Final[set[str]] = {f"transcript--{role}" for role in TextRole}
_ROLE_LOOKS: Final = """
{widget} > .transcript--text {{ color: $foreground; }}
{widget} > .transcript--user {{ color: $text-primary; }}
{widget} > .transcript--agent {{ color: $text-secondary; }}
{widget} > .transcript--prompt {{ color: $foreground; }}
{widget} > .transcript--dim {{ color: $text-muted; }}
{widget} > .transcript--heading {{ color: $text-primary; }}
{widget} > .transcript--code {{ color: $foreground; }}
{widget} > .transcript--inline {{ color: $text-accent; background: $panel; }}
{widget} > .transcript--quote {{ color: $text-muted; }}
{widget} > .transcript--rule {{ color: $text-disabled; }}
{widget} > .transcript--link {{ color: $text-accent; text-style: underline; }}
{widget} > .transcript--working {{ color: $text-primary; }}
{widget} > .transcript--coming {{ color: $text-secondary; }}
{widget} > .transcript--done {{ color: $text-success; }}
{widget} > .transcript--failed {{ color: $text-error; }}
{widget} > .transcript--asking {{ color: $needs-you; }}
{widget} > .transcript--warning {{ color: $text-warning; }}
{widget} > .transcript--chosen {{ color: $needs-you; text-style: reverse; }}
{widget} > .transcript--added {{ color: $text-success; }}
{widget} > .transcript--removed {{ color: $text-error; }}
{widget} > .transcript--keyword {{ color: $text-primary; }}
{widget} > .transcript--string {{ color: $text-success; }}
{widget} > .transcript--comment {{ color: $text-muted; }}
{widget} > .transcript--number {{ color: $text-warning; }}
{widget} > .transcript--name {{ color: $text-accent; }}
"""


def role_css(widget: str) -> str:
    """Return the styles of the roles in a widget of this name: agents' text looks the same everywhere."""
    return _ROLE_LOOKS.format(widget=widget)
