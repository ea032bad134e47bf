"""Facts and texts, wrapped to the width and painted by line."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.transcript.clean import clean
from quarterdeck.tui.automations.pieces import CLASSES, CSS, Line, Piece, Pieces
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view.lines import Span
from quarterdeck.tui.transcript_view.wrap import wrap, wrap_hard
from quarterdeck.tui.widgets.placed import Placed

LABEL = 13
"""Cells of the column of labels."""


class TextView(ScrollView, Placed, can_focus=True):
    """Scrolled by keys and the mouse; what is shown again stays where it is."""

    COMPONENT_CLASSES = CLASSES
    DEFAULT_CSS = f"""
    TextView {{
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        {CSS}
    }}
    """
    MOVES: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("home,g", "scroll_home", "Top", show=False),
        Binding("end,G", "scroll_end", "Bottom", show=False),
        Binding("pagedown,space", "page_down", "Page down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self._painted: list[Pieces] = []

    def show(self, lines: Iterable[Line]) -> None:
        """Shows these lines."""
        told = tuple(lines)
        if told != self._lines:
            self._lines = told
            self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.size.width
        if width <= 0:
            return
        self._painted = [piece for line in self._lines for piece in laid_out(line, width)]
        self.virtual_size = Size(width, len(self._painted))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, line = self.size.width, y + self.scroll_offset.y
        if line >= len(self._painted):
            return Strip.blank(width, self.rich_style)
        return self._painted[line].strip(self, width, self.rich_style)


def laid_out(line: Line, width: int) -> Iterator[Pieces]:
    """A line as it is painted: one or more of at most this width."""
    indent = LABEL if line.label else 0
    room = max(8, width - indent - 2)
    for number, text in enumerate(_wrapped(line, room)):
        first = Piece(f" {line.label}" if number == 0 else "", "muted", indent + 1)
        yield Pieces((first, Piece(text, line.color, -1, line.bold)))


def _wrapped(line: Line, room: int) -> Sequence[str]:
    if not line.text:
        return [""]
    if line.hard:
        rows = wrap_hard([Span(clean(line.text))], room)
    else:
        rows = wrap([Span(one_line(line.text))], room)
    return ["".join(span.text for span in row) for row in rows] or [""]
