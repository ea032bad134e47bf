"""Text chosen with the mouse.

A place is told to Textual as an offset: the character in the row, and a number that stands for the
block and the row in it, so that it stays when the window moves.
"""

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from quarterdeck.tui.transcript_view.drawings import MARGIN
from quarterdeck.tui.transcript_view.lines import plain
from quarterdeck.tui.transcript_view.reader import Reader

_ROWS = 1 << 20
"""More rows than any block has."""


def row_number(reader: Reader, row: int) -> int | None:
    """The number of a row of the window; None below the end."""
    place = reader.viewport.locate(row)
    return None if place is None else place[0] * _ROWS + place[1]


def whole_block(reader: Reader) -> Selection | None:
    """All of the cursor's block."""
    index = None if reader.cursor is None else reader.transcript.position(reader.cursor)
    if index is None:
        return None
    return Selection(Offset(0, index * _ROWS), Offset(0, (index + 1) * _ROWS - 1))


def selected_text(reader: Reader, selection: Selection) -> str:
    """The rows as they are drawn; an end that is not told is that of the window."""
    start, end = selection
    seen = [index for index, _ in reader.viewport.rows()]
    if not seen:
        return ""
    first = seen[0] if start is None else start.y // _ROWS
    last = seen[-1] if end is None else end.y // _ROWS
    last = min(last, len(reader.transcript.blocks) - 1)
    chosen: list[str] = []
    for index in range(first, last + 1):
        for number, text in enumerate(plain(reader.rows(index))):
            span = selection.get_span(index * _ROWS + number)
            if span is not None:
                chosen.append(_cut(" " * MARGIN + text, *span))
    return "\n".join(chosen).strip("\n")


def highlighted(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    """A row with some of its characters, from and up to, in the style on top of their own."""
    text = strip.text
    start, end = span
    end = len(text.rstrip()) if end == -1 else end
    left = max(MARGIN, cell_len(text[:start]))
    right = max(left, cell_len(text[:end]))
    before, inside, after = strip.crop(0, left), strip.crop(left, right), strip.crop(right)
    chosen = [Segment(words, (own or Style.null()) + style) for words, own, _ in inside]
    return Strip.join([before, Strip(chosen), after])


def _cut(text: str, start: int, end: int) -> str:
    return text[max(MARGIN, start) : None if end == -1 else end].rstrip()
