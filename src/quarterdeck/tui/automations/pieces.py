"""What lines are painted from: pieces of text, each with the name of a color."""

from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.transcript.clean import clean

COLORS = ("muted", "primary", "secondary", "warning", "error", "success")
CLASSES = {f"piece--{color}" for color in COLORS}
CSS = "\n".join(f"& > .piece--{color} {{ color: $text-{color}; }}" for color in COLORS)
BOLD = Style(bold=True)


@dataclass(frozen=True)
class Piece:
    """A part of a line. `width` cells, cut or padded; 0 for as many as it has, -1 for the rest."""

    text: str
    color: str = ""
    width: int = 0
    bold: bool = False

    def cells(self, width: int) -> str:
        """The text in exactly so many cells, harmless; its blanks count."""
        text = clean(self.text).replace("\n", " ").replace("\t", " ")
        if cell_len(text) <= width or width <= 0:
            return set_cell_size(text, max(0, width))
        return set_cell_size(text, width - 1) + "…"


@dataclass(frozen=True)
class Line:
    """A line of facts, which may be wrapped. `label` stands before it, in a column of its own.

    `hard` lines keep their blanks: code, and what came from outside.
    """

    text: str = ""
    color: str = ""
    label: str = ""
    bold: bool = False
    hard: bool = False


@dataclass(frozen=True)
class Pieces:
    """One painted line."""

    parts: tuple[Piece, ...] = field(default_factory=tuple[Piece, ...])

    def strip(self, owner: Widget, width: int, base: Style, *, plain: bool = False) -> Strip:
        """The line in exactly `width` cells; `plain` leaves the colors out, as under a cursor."""
        fixed = sum(_fixed(part) for part in self.parts if part.width >= 0)
        segments: list[Segment] = []
        left = width
        for part in self.parts:
            size = max(0, width - fixed) if part.width < 0 else _fixed(part)
            size = min(size, left)
            left -= size
            style = base + BOLD if part.bold else base
            if part.color and not plain:
                style += owner.get_component_rich_style(f"piece--{part.color}")
            segments.append(Segment(part.cells(size), style))
        return Strip(segments).extend_cell_length(width, base)


def _fixed(part: Piece) -> int:
    return part.width or cell_len(part.text)
