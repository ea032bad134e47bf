"""Roles become the theme's styles, rows become strips."""

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from quarterdeck.tui.transcript_view.lines import Line, Mark, Role

StyleOf = Callable[[Role], Style]


class Painter:
    """Makes strips; styles are looked up once until `reset`."""

    def __init__(self, style_of: StyleOf) -> None:
        self._style_of = style_of
        self._styles: dict[tuple[Role, Mark, str], Style] = {}

    def reset(self) -> None:
        """The theme changed."""
        self._styles.clear()

    def strip(self, row: Line, width: int, margin: int) -> Strip:
        """A row of `width` cells, `margin` blanks before it."""
        blank = self.style(Role.TEXT)
        segments = [Segment(" " * margin, blank)] if margin else []
        segments += [
            Segment(span.text, self.style(span.role, span.marks, span.link)) for span in row
        ]
        return Strip(segments).adjust_cell_length(width, blank)

    def style(self, role: Role, marks: Mark = Mark.NONE, link: str = "") -> Style:
        """The style of a role with emphasis."""
        key = (role, marks, link)
        style = self._styles.get(key)
        if style is None:
            style = self._styles[key] = self._style_of(role) + _emphasis(marks, link)
        return style


def _emphasis(marks: Mark, link: str) -> Style:
    return Style(
        bold=True if Mark.BOLD in marks else None,
        italic=True if Mark.ITALIC in marks else None,
        strike=True if Mark.STRIKE in marks else None,
        underline=True if Mark.UNDERLINE in marks else None,
        link=link or None,
    )
