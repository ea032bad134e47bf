"""Draw changes.

Component styles are laid over each other: colored text on the background of a changed line.

Textual resolves one component at a time; here a background is a tint of what is below it, and the text
keeps its own color. Themes with the terminal's own colors have no tints: there, a changed line is
marked by the color of its text.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.store.changes_comments import Comment
from quarterdeck.store.changes_diff import DiffSide, Numbered
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.changes.document import (
    BAR,
    COMMENT_INSET,
    LineShape,
    PlacedSection,
    comment_rows,
    cut,
    difference,
    fold,
    matches,
)
from quarterdeck.tui.changes.model import (
    MINUS,
    DiffSection,
    Item,
    ItemKind,
    comment_head,
    kind_of,
    path_of,
    visible,
)
from quarterdeck.tui.kit.highlight import code_lines, language_of
from quarterdeck.tui.kit.spans import Line, Span, TextRole, line
from quarterdeck.tui.kit.spans import line as whole_line
from quarterdeck.tui.text import fit

if TYPE_CHECKING:
    pass


CHUNK = 200
"""Lines that are highlighted at once; a construct that crosses a boundary loses its color."""
_KEPT = 40


class Colors:
    """Highlighted lines of files. Removed lines take their colors from the old file, others from the new."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int, DiffSide], dict[int, Line]] = OrderedDict()

    def clear(self) -> None:
        """Forget the previous files."""
        self._kept.clear()

    def line(self, section: DiffSection, index: int) -> Line:
        """Return the spans of a line."""
        numbered = section.lines[index]
        key = (id(section.change), index // CHUNK, numbered.side)
        chunk = self._kept.get(key)
        if chunk is None:
            chunk = self._kept[key] = _chunk(section, index // CHUNK * CHUNK, numbered.side)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return chunk[index]


def _chunk(section: DiffSection, begin: int, side: DiffSide) -> dict[int, Line]:
    own = "-" if side == DiffSide.OLD else "+"
    lines = section.lines
    indices = [
        at for at in range(begin, min(begin + CHUNK, len(lines))) if lines[at].sign in (" ", own)
    ]
    texts = [visible(lines[at].text) for at in indices]
    path = section.change.path if section.change is not None else ""
    colored = code_lines("\n".join(texts), language_of(path))
    if len(colored) != len(texts):
        colored = [()] * len(texts)
    return {
        at: _checked(spans, text) for at, spans, text in zip(indices, colored, texts, strict=True)
    }


def _checked(spans: Line, text: str) -> Line:
    """Return the text as it is, without the rules of a language: a review shows the bytes."""
    return spans if "".join(span.text for span in spans) == text else line(text, TextRole.CODE)


TINTS = {"added", "removed", "added-word", "removed-word"}
"""Components that color the background."""


class Shades:
    """Caches styles until `reset`."""

    def __init__(self, widget: Widget, prefix: str) -> None:
        self._widget = widget
        self._prefix = prefix
        self._known: dict[tuple[str, ...], Style] = {}

    def reset(self) -> None:
        """Forget the styles of the previous theme."""
        self._known.clear()

    def get(self, *names: str) -> Style:
        """Return the style of components, each over those before it; empty names are ignored."""
        style = self._known.get(names)
        if style is None:
            style = self._known[names] = self._make([name for name in names if name])
        return style

    def _make(self, names: list[str]) -> Style:
        ground = self._widget.background_colors[1]
        text = self._widget.colors[3]
        marks = Style()
        own_colors = True
        for name in names:
            styles = self._widget.get_component_styles(f"{self._prefix}--{name}")
            if name in TINTS and styles.background.ansi is not None:
                text, own_colors = styles.background, False
                marks += Style(reverse=name.endswith("-word") or None)
                continue
            if styles.has_rule("background"):
                ground += styles.background
            if name.endswith("-word"):
                # The strongest background of all: the colors of code are not visible on it.
                text, own_colors = self._widget.colors[3], False
            if styles.has_rule("auto_color") and styles.auto_color:
                text = ground.get_contrast_text(styles.color.a)
            elif styles.has_rule("color") and styles.color.a and own_colors:
                text = styles.color
            if styles.has_rule("text_style"):
                marks += styles.text_style
        return Style.from_color(_on(ground, text).rich_color, ground.rich_color) + marks


def _on(ground: Color, text: Color) -> Color:
    return text if text.ansi is not None else ground + text


MARKED = "\u2713"
_GROUNDS = {"+": "added", "-": "removed"}


class ChangesDrawing:
    """Draws the items of one view."""

    def __init__(self, shades: Shades) -> None:
        self.style = shades.get
        self._colors = Colors()
        self.wanted = ""
        """The search text."""
        self.marked: frozenset[tuple[str, str]] = frozenset()
        """Files marked for a commit, by repository and path."""

    def forget(self) -> None:
        """Forget the previous files."""
        self._colors.clear()

    def strips(self, placed: PlacedSection, item: Item) -> list[Strip]:
        """Return the rows of an item, without the cursor."""
        shape = placed.shape
        match item.kind:
            case ItemKind.LINE:
                rows = self._side(placed.section, item.line, item.partner, shape)
                return [self._row([row], shape) for row in rows]
            case ItemKind.PAIR:
                return self._pair(placed.section, item, shape)
            case ItemKind.COMMENT if item.comment is not None:
                return self._comment(placed, item.comment, shape)
            case ItemKind.FILE:
                return [self._row([self._file(placed.section, shape.width - BAR)], shape, "file")]
            case ItemKind.REPOSITORY:
                return [self._row([self._repository(placed.section)], shape, "repository")]
            case ItemKind.HUNK:
                text = fit(visible(item.text), shape.width - BAR)
                return [self._row([[Segment(text, self.style("hunk"))]], shape)]
            case _:
                text = f"  {fit(item.text, shape.width - BAR - 2)}"
                return [self._row([[Segment(text, self.style("note"))]], shape)]

    def _row(self, parts: Sequence[list[Segment]], shape: LineShape, ground: str = "") -> Strip:
        style = self.style(ground)
        segments = [Segment(" " * BAR, style)]
        for part in parts:
            segments += part
        return Strip(segments).adjust_cell_length(shape.width, style)

    # heads

    def _file(self, section: DiffSection, width: int) -> list[Segment]:
        change = section.change
        assert change is not None
        touched = change.added or change.removed
        tail = (f" +{change.added}", f" {MINUS}{change.removed} ") if touched else ("", "")
        notes = [kind_of(change)] if kind_of(change) else []
        if section.comments:
            notes.append(f"{len(section.comments)} \u270e")
        words = " ".join(["", *notes]) if notes else ""
        marked = f"{MARKED} " if section.key in self.marked else ""
        room = width - 2 - len(marked) - sum(len(text) for text in tail) - len(words)
        path = path_of(change)
        if cell_len(path) > room:
            # The end of a path says more than its start.
            while path and cell_len(path) > room - 1:
                path = path[1:]
            path = "\u2026" + path
        return [
            Segment("\u25b8 " if section.folded else "\u25be ", self.style("file", "note")),
            Segment(marked, self.style("file", "chosen")),
            Segment(path, self.style("file")),
            Segment(tail[0], self.style("file", "plus")),
            Segment(tail[1], self.style("file", "minus")),
            Segment(words, self.style("file", "note")),
        ]

    def _repository(self, section: DiffSection) -> list[Segment]:
        about = section.repository
        files = about.files or []
        count = f"{len(files)} file" + ("" if len(files) == 1 else "s")
        branch = f" {one_line(about.branch)}" if about.branch else ""
        return [
            Segment(one_line(about.name), self.style("repository")),
            Segment(f"{branch} \u00b7 {count} ", self.style("repository", "note")),
            Segment(f"+{about.added}", self.style("repository", "plus")),
            Segment(f" {MINUS}{about.removed}", self.style("repository", "minus")),
        ]

    # lines

    def _pair(self, section: DiffSection, item: Item, shape: LineShape) -> list[Strip]:
        left = self._side(section, item.line, item.partner, shape)
        same = item.line == item.partner
        right = self._side(section, item.partner, item.line, shape, new=same)
        rule = [Segment("\u2502", self.style("rule"))]
        blank = [Segment(" " * shape.half, self.style())]
        return [
            self._row(
                [left[n] if n < len(left) else blank, rule, right[n] if n < len(right) else blank],
                shape,
            )
            for n in range(max(len(left), len(right)))
        ]

    def _side(
        self, section: DiffSection, index: int, partner: int, shape: LineShape, *, new: bool = False
    ) -> list[list[Segment]]:
        """Return the rows of one line. `new`: it is the right one of two equal lines."""
        if index < 0:
            return [[Segment(" " * shape.half, self.style())]]
        line = section.lines[index]
        ground = _GROUNDS.get(line.sign, "")
        rows = fold(self._spans(section, index, partner, line), shape.code)
        return [
            [
                *self._gutter(line, shape, ground, first=not number, new=new),
                *self._code(row, shape, ground),
            ]
            for number, row in enumerate(rows)
        ]

    def _spans(self, section: DiffSection, index: int, partner: int, line: Numbered) -> list[Span]:
        text = visible(line.text)
        if line.sign == "\\":
            return list(whole_line(text, TextRole.DIM))
        spans: Line = self._colors.line(section, index)
        ranges = list(matches(text, self.wanted))
        if partner not in (-1, index) and section.lines[partner].sign != "\\":
            found = difference(text, visible(section.lines[partner].text))
            ranges = [found, *ranges] if found else ranges
        return cut(spans, ranges)

    def _gutter(
        self, line: Numbered, shape: LineShape, ground: str, *, first: bool, new: bool
    ) -> list[Segment]:
        if not first:
            return [Segment(" " * shape.gutter, self.style(ground))]
        if shape.both:
            numbers = [line.old, line.new]
        else:
            numbers = [line.old if shape.split and line.old and not new else line.new or line.old]
        text = "".join(f"{number or '':>{shape.digits}} " for number in numbers)
        sign = " " if line.sign == "\\" else line.sign
        return [
            Segment(text, self.style(ground, "number")),
            Segment(f"{sign} ", self.style(ground, _SIGNS.get(sign, ""))),
        ]

    def _code(self, row: Sequence[Span], shape: LineShape, ground: str) -> list[Segment]:
        segments = [
            Segment(
                span.text,
                self.style(
                    ground,
                    f"{ground}-{span.target}" if span.target == "word" else "",
                    f"code-{span.role}",
                    "match" if span.target == "match" else "",
                ),
            )
            for span in row
        ]
        used = sum(cell_len(span.text) for span in row)
        return [*segments, Segment(" " * (shape.code - used), self.style(ground))]

    # comments

    def _comment(self, placed: PlacedSection, comment: Comment, shape: LineShape) -> list[Strip]:
        inside = placed.items[_first_hunk(placed.items) :] if comment.quoted else placed.items
        deleted = placed.section.change is None
        outdated = deleted or not any(item.comment is comment for item in inside)
        inset = Segment(" " * (COMMENT_INSET - 1), self.style())
        edge = Segment("\u2503 ", self.style("comment-edge"))
        head = fit(comment_head(comment, outdated=outdated), shape.prose)
        rows = [Segment(head, self.style("comment-head"))]
        rows += [
            Segment(fit_row(row, shape.prose), self.style("comment"))
            for row in comment_rows(comment.text, shape.prose)
        ]
        return [self._row([[inset, edge, row]], shape) for row in rows]


_SIGNS = {"+": "plus", "-": "minus"}


def fit_row(text: str, width: int) -> str:
    """Return a row padded to a width; its spaces are kept."""
    return text + " " * max(0, width - cell_len(text))


def _first_hunk(items: Sequence[Item]) -> int:
    return next((at for at, item in enumerate(items) if item.kind == ItemKind.HUNK), len(items))


_STYLE_GROUNDS = ("added", "removed", "added-word", "removed-word", "file", "repository", "match")
_TEXTS = (
    "plus",
    "minus",
    "number",
    "note",
    "rule",
    "hunk",
    "cursor",
    "chosen",
    "comment",
    "comment-head",
    "comment-edge",
    "empty",
)
_CODE: Final = {
    TextRole.KEYWORD: "$text-primary",
    TextRole.STRING: "$text-success",
    TextRole.COMMENT: "$text-muted",
    TextRole.NUMBER: "$text-warning",
    TextRole.NAME: "$text-accent",
    TextRole.DIM: "$text-muted",
}

COMPONENTS: Final[set[str]] = {f"changes--{name}" for name in (*_STYLE_GROUNDS, *_TEXTS)} | {
    f"changes--code-{role}" for role in TextRole
}

CSS: Final = (
    """
ChangesWindow {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
    & > .changes--added { background: $success 12%; }
    & > .changes--removed { background: $error 12%; }
    & > .changes--added-word { background: $success 35%; }
    & > .changes--removed-word { background: $error 35%; }
    & > .changes--file { background: $panel; text-style: bold; }
    & > .changes--repository { color: $text-primary; text-style: bold underline; }
    & > .changes--match { color: $text-warning; text-style: reverse; }
    & > .changes--plus { color: $text-success; }
    & > .changes--minus { color: $text-error; }
    & > .changes--number { color: $text-muted; }
    & > .changes--note { color: $text-muted; text-style: none; }
    & > .changes--rule { color: $text-disabled; }
    & > .changes--hunk { color: $text-muted; }
    & > .changes--cursor { color: $text-primary; }
    & > .changes--chosen { color: $text-warning; }
    & > .changes--comment { color: $foreground; }
    & > .changes--comment-head { color: $text-warning; }
    & > .changes--comment-edge { color: $text-warning; }
    & > .changes--empty { color: $text-muted; }
"""
    + "".join(
        f"    & > .changes--code-{role} {{ color: {color}; }}\n" for role, color in _CODE.items()
    )
    + "}\n"
)
