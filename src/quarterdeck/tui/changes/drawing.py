"""Items become strips."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from quarterdeck.store.changes_comments import Comment
from quarterdeck.store.changes_model import Numbered
from quarterdeck.tui.changes.colors import Colors
from quarterdeck.tui.changes.layout import BAR, COMMENT_INSET, Placed, Shape, comment_rows
from quarterdeck.tui.changes.model import Item, Kind, Section
from quarterdeck.tui.changes.pieces import cut, difference, fold, matches
from quarterdeck.tui.changes.shades import Shades
from quarterdeck.tui.changes.visible import visible
from quarterdeck.tui.changes.words import MINUS, comment_head, kind_of, path_of
from quarterdeck.tui.text import fit, one_line
from quarterdeck.tui.transcript_view.lines import Line, Role, Span
from quarterdeck.tui.transcript_view.lines import line as whole_line

_GROUNDS = {"+": "added", "-": "removed"}


class Drawing:
    """Draws the items of one view."""

    def __init__(self, shades: Shades) -> None:
        self.style = shades.get
        self._colors = Colors()
        self.wanted = ""
        """What is searched for."""

    def forget(self) -> None:
        """Other files."""
        self._colors.clear()

    def strips(self, placed: Placed, item: Item) -> list[Strip]:
        """The rows of an item, without the cursor."""
        shape = placed.shape
        match item.kind:
            case Kind.LINE:
                rows = self._side(placed.section, item.line, item.partner, shape)
                return [self._row([row], shape) for row in rows]
            case Kind.PAIR:
                return self._pair(placed.section, item, shape)
            case Kind.COMMENT if item.comment is not None:
                return self._comment(placed, item.comment, shape)
            case Kind.FILE:
                return [self._row([self._file(placed.section, shape.width - BAR)], shape, "file")]
            case Kind.REPOSITORY:
                return [self._row([self._repository(placed.section)], shape, "repository")]
            case Kind.HUNK:
                text = fit(visible(item.text), shape.width - BAR)
                return [self._row([[Segment(text, self.style("hunk"))]], shape)]
            case _:
                text = f"  {fit(item.text, shape.width - BAR - 2)}"
                return [self._row([[Segment(text, self.style("note"))]], shape)]

    def _row(self, parts: Sequence[list[Segment]], shape: Shape, ground: str = "") -> Strip:
        style = self.style(ground)
        segments = [Segment(" " * BAR, style)]
        for part in parts:
            segments += part
        return Strip(segments).adjust_cell_length(shape.width, style)

    # heads

    def _file(self, section: Section, width: int) -> list[Segment]:
        change = section.change
        assert change is not None
        touched = change.added or change.removed
        tail = (f" +{change.added}", f" {MINUS}{change.removed} ") if touched else ("", "")
        said = [kind_of(change)] if kind_of(change) else []
        if section.comments:
            said.append(f"{len(section.comments)} \u270e")
        words = " ".join(["", *said]) if said else ""
        room = width - 2 - sum(len(text) for text in tail) - len(words)
        path = path_of(change)
        if cell_len(path) > room:
            # The end of a path says more than its beginning.
            while path and cell_len(path) > room - 1:
                path = path[1:]
            path = "\u2026" + path
        return [
            Segment("\u25b8 " if section.folded else "\u25be ", self.style("file", "note")),
            Segment(path, self.style("file")),
            Segment(tail[0], self.style("file", "plus")),
            Segment(tail[1], self.style("file", "minus")),
            Segment(words, self.style("file", "note")),
        ]

    def _repository(self, section: Section) -> list[Segment]:
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

    def _pair(self, section: Section, item: Item, shape: Shape) -> list[Strip]:
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
        self, section: Section, index: int, partner: int, shape: Shape, *, new: bool = False
    ) -> list[list[Segment]]:
        """The rows of one line. `new`: it is the right one of two that are the same."""
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

    def _spans(self, section: Section, index: int, partner: int, line: Numbered) -> list[Span]:
        text = visible(line.text)
        if line.sign == "\\":
            return list(whole_line(text, Role.DIM))
        spans: Line = self._colors.line(section, index)
        ranges = list(matches(text, self.wanted))
        if partner not in (-1, index) and section.lines[partner].sign != "\\":
            found = difference(text, visible(section.lines[partner].text))
            ranges = [found, *ranges] if found else ranges
        return cut(spans, ranges)

    def _gutter(
        self, line: Numbered, shape: Shape, ground: str, *, first: bool, new: bool
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

    def _code(self, row: Sequence[Span], shape: Shape, ground: str) -> list[Segment]:
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

    def _comment(self, placed: Placed, comment: Comment, shape: Shape) -> list[Strip]:
        inside = placed.items[_first_hunk(placed.items) :] if comment.quoted else placed.items
        gone = placed.section.change is None
        outdated = gone or not any(item.comment is comment for item in inside)
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
    """A row padded to a width; its blanks stay as they are."""
    return text + " " * max(0, width - cell_len(text))


def _first_hunk(items: Sequence[Item]) -> int:
    return next((at for at, item in enumerate(items) if item.kind == Kind.HUNK), len(items))
