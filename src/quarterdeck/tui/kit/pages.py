"""Pages of a text."""

from collections.abc import Sequence
from typing import Protocol

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.transcript.text import clean, clean_output, one_line
from quarterdeck.tui.kit.spans import Line, Span, TextRole, line, plain, untabbed, wrap_hard
from quarterdeck.tui.text import fit
from quarterdeck.tui.themes import part_style
from quarterdeck.tui.transcript_view.markdown import Prose

LONGEST_ROW = 4_000
"""Characters of a line that are shown; nobody reads further to the right."""
_ROOM_TO_SAY_CUT = 36


class Page(Protocol):
    """Rows of one text. `numbered`: a row is a line of the text, and has its number."""

    numbered: bool

    def lay_out(self, width: int) -> None:
        """Prepare the rows for a window of this width."""
        ...

    def __len__(self) -> int: ...

    def row(self, index: int) -> Line:
        """Return a row to be painted."""
        ...

    def text(self, index: int) -> str:
        """Return the text to copy of a row."""
        ...

    @property
    def width(self) -> int:
        """Width of the longest row."""
        ...


class SourcePage:
    """A text with a row for each line, wider than the window where a line is. Colors are added later."""

    numbered = True

    def __init__(self, text: str) -> None:
        lines = clean(text).split("\n")
        if len(lines) > 1 and not lines[-1]:
            lines.pop()
        self.lines = lines
        self.colors: Sequence[Line] | None = None
        """The lines as colored spans, once they are known."""
        self._width = max(_cells(row) for row in lines)

    def lay_out(self, width: int) -> None:
        """Do nothing: lines are not wrapped."""

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def width(self) -> int:
        return self._width

    def row(self, index: int) -> Line:
        text = self.lines[index]
        if len(text) > LONGEST_ROW:
            left_out = len(text) - LONGEST_ROW
            cut = Span(untabbed(text[:LONGEST_ROW]), TextRole.CODE)
            return (cut, Span(f"… and {left_out:,} characters more", TextRole.DIM))
        if self.colors is None or "\t" in text:
            # Tab stops are counted from the start of the line, not of a span.
            return _untabbed_row(self.colors[index]) if self.colors else (_code(text),)
        return self.colors[index]

    def text(self, index: int) -> str:
        return self.lines[index]


def _cells(text: str) -> int:
    if len(text) > LONGEST_ROW:
        return cell_len(untabbed(text[:LONGEST_ROW])) + _ROOM_TO_SAY_CUT
    text = untabbed(text)
    return len(text) if text.isascii() else cell_len(text)


def _code(text: str) -> Span:
    return Span(untabbed(text), TextRole.CODE)


def _untabbed_row(row: Line) -> Line:
    spans: list[Span] = []
    before = ""
    for span in row:
        after = untabbed(before + span.text)
        at = len(untabbed(before))
        spans.append(span._replace(text=after[at:]))
        before += span.text
    return tuple(spans)


class WrappedPage:
    """Rows that fit the window."""

    numbered = False

    def __init__(self) -> None:
        self._rows: list[Line] = []
        self._laid_out = 0

    def _draw(self, width: int) -> list[Line]:
        raise NotImplementedError

    def lay_out(self, width: int) -> None:
        if width != self._laid_out and width > 0:
            self._laid_out = width
            self._rows = self._draw(width)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def width(self) -> int:
        return 0

    def row(self, index: int) -> Line:
        return self._rows[index]

    def text(self, index: int) -> str:
        return plain([self._rows[index]])[0]


class MarkdownPage(WrappedPage):
    """Rendered markdown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._source = clean(text)

    def _draw(self, width: int) -> list[Line]:
        return Prose(width).rows(self._source)


class OutputPage(WrappedPage):
    """The output of a program, with long lines wrapped. It may grow at its end."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._ended: list[str] = []
        """Whole lines, as they were printed."""
        self._open = ""
        """The last line: further output may still change it."""
        self._open_rows = 0
        self.append(text)

    def append(self, text: str) -> None:
        """Append further output."""
        if not text:
            return
        *ended, self._open = (self._open + text).split("\n")
        self._ended += ended
        if self._laid_out:
            del self._rows[len(self._rows) - self._open_rows :]
            self._rows += [row for one in ended for row in _folded(one, self._laid_out)]
            self._add_open(self._rows)

    def _draw(self, width: int) -> list[Line]:
        rows = [row for one in self._ended for row in _folded(one, width)]
        self._laid_out = width
        self._add_open(rows)
        return rows

    def _add_open(self, rows: list[Line]) -> None:
        added = _folded(self._open, self._laid_out) if self._open else []
        self._open_rows = len(added)
        rows += added


def _folded(text: str, width: int) -> list[Line]:
    cleaned = clean_output(text)
    return [
        row for one in cleaned.split("\n") for row in wrap_hard(line(one, TextRole.CODE), width)
    ]


class TitleLine(Widget):
    """`words` give way to `facts`, which are at the right."""

    COMPONENT_CLASSES = {"title--facts"}
    DEFAULT_CSS = """
    TitleLine {
        height: 1;
        background: $panel;
        text-style: bold;
        & > .title--facts { color: $text-muted; text-style: not bold; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown = ("", "")

    def show(self, words: str, facts: str = "") -> None:
        """Show another text."""
        shown = (one_line(words), one_line(facts))
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        words, facts = self._shown
        width = self.size.width
        room = width - 2 - cell_len(facts)
        if room < min(12, cell_len(words)):
            facts, room = "", width - 2
        style = self.rich_style
        aside = style + part_style(self, "title--facts")
        segments = [Segment(f" {fit(words, max(0, room))}", style), Segment(f"{facts} ", aside)]
        return Strip(segments).adjust_cell_length(width, style)
