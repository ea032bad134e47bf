"""Move, select and search in a transcript, and the keys for it.

A place of a selection is an offset for Textual: the character in the row, and a number for the block and
the row in it, so that it stays when the window moves.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    ResultBlock,
    SpeechBlock,
    TextPart,
    ToolBlock,
    UserBlock,
)
from quarterdeck.transcript.export import plain_lines
from quarterdeck.tui.kit.spans import BAR, ROLE_COMPONENTS, plain, role_css
from quarterdeck.tui.transcript_view.blocks import BlockShape, can_open
from quarterdeck.tui.transcript_view.view_model import MARGIN, TranscriptReader

COMPONENTS: Final[set[str]] = ROLE_COMPONENTS | {
    f"transcript--{name}" for name in ("cursor", "below", "found", "found-here")
}

BINDINGS: Final = [
    Binding("up,k", "line(-1)", "Up", show=False, id="transcript.up"),
    Binding("down,j", "line(1)", "Down", show=False, id="transcript.down"),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="transcript.page-up"),
    Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="transcript.page-down"),
    Binding("home,g", "top", "Top", show=False, id="transcript.top"),
    Binding("end", "bottom", "End", show=False, id="transcript.bottom"),
    Binding(
        "left_square_bracket",
        "prompt(-1)",
        "Previous prompt",
        show=False,
        id="transcript.previous-prompt",
    ),
    Binding(
        "right_square_bracket", "prompt(1)", "Next prompt", show=False, id="transcript.next-prompt"
    ),
    Binding("enter", "activate", "Expand or collapse", show=False, id="transcript.toggle"),
    Binding("y", "copy", "Copy", show=False, id="transcript.copy"),
]

CSS: Final = """
TranscriptView {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
}
TranscriptView > .transcript--cursor { color: $text-primary; }
TranscriptView > .transcript--found { background: $warning 40%; }
TranscriptView > .transcript--found-here {
    background: $warning;
    color: $background;
    text-style: bold;
}
TranscriptView > .transcript--below { color: $text-primary; text-style: reverse; }
""" + role_css("TranscriptView")


def step(reader: TranscriptReader, by: int) -> None:
    """Move the cursor to the next (1) or previous (-1) block; through a high block line by line."""
    index = _cursor_index(reader)
    if index is None:
        _enter(reader, by)
        return
    row, end = _extent(reader, index)
    viewport = reader.viewport
    if (by > 0 and end > viewport.height) or (by < 0 and row < 0):
        viewport.move(by)
        return
    target = _stop(reader, index + by, by)
    if target is None:
        return
    _set(reader, target)
    if by < 0 and viewport.heights[target] > viewport.height - 1:
        viewport.move(-1)
    else:
        viewport.reveal(target)


def page(reader: TranscriptReader, by: int) -> None:
    """Move by a window, keeping one line."""
    reader.viewport.move(by * max(1, reader.viewport.height - 1))
    shown = [index for index, row in reader.viewport.rows() if row >= 0]
    if shown:
        _set_near(reader, shown[-1] if by > 0 else shown[0], -by)


def top(reader: TranscriptReader) -> None:
    """Go to the first loaded line."""
    reader.viewport.show(0)
    _set(reader, 0)


def bottom(reader: TranscriptReader) -> None:
    """Go to the end, and follow it."""
    reader.viewport.end()
    _set_near(reader, len(reader.transcript.blocks) - 1, -1)


def prompt(reader: TranscriptReader, by: int) -> bool:
    """Bring the next or previous user message to the top; False when there is none."""
    blocks = reader.transcript.blocks
    at = _cursor_index(reader)
    at = reader.viewport.index if at is None else at
    for index in range(at + by, len(blocks) if by > 0 else -1, by):
        if isinstance(blocks[index], UserBlock):
            reader.viewport.show(index)
            _set(reader, index)
            return True
    if by > 0:
        bottom(reader)
    return False


def to_time(reader: TranscriptReader, at: datetime, *, has_older: bool) -> bool:
    """Bring the first block of a time or later to the top; False when it is on an older page."""
    blocks = reader.transcript.blocks
    index = bisect_left(blocks, at, key=lambda block: block.at)
    if not blocks or (has_older and (index == 0 and blocks[0].at > at)):
        return False
    reader.settle()
    index = min(index, len(blocks) - 1)
    reader.viewport.show(index)
    _set(reader, index)
    return True


def cursor_block(reader: TranscriptReader) -> Block | None:
    """Return the block under the cursor."""
    return None if reader.cursor is None else reader.transcript.block(reader.cursor)


def _cursor_index(reader: TranscriptReader) -> int | None:
    """Return the cursor's position, when it is in the window."""
    index = None if reader.cursor is None else reader.transcript.position(reader.cursor)
    if index is None:
        return None
    return index if any(index == seen for seen, _ in reader.viewport.rows()) else None


def _enter(reader: TranscriptReader, by: int) -> None:
    """Move a cursor that is nowhere, or out of the window, into it."""
    seen = [index for index, _ in reader.viewport.rows()]
    if seen:
        at_end = by < 0 or reader.viewport.following
        target = _set_near(reader, seen[-1] if at_end else seen[0], -1 if at_end else 1)
        reader.viewport.reveal(target)


def _stop(reader: TranscriptReader, index: int, by: int) -> int | None:
    """Return the first block from an index on that the cursor stops at; a rule is not one."""
    blocks = reader.transcript.blocks
    while 0 <= index < len(blocks):
        block = blocks[index]
        if not (isinstance(block, ResultBlock) and block.is_plain):
            return index
        index += by
    return None


def _set_near(reader: TranscriptReader, index: int, by: int) -> int:
    """Move the cursor to the nearest block from an index on at which it may stop, and return its index."""
    stop = _stop(reader, index, by)
    target = index if stop is None else stop
    _set(reader, target)
    return target


def _extent(reader: TranscriptReader, index: int) -> tuple[int, int]:
    for seen, row in reader.viewport.rows():
        if seen == index:
            return row, row + reader.viewport.heights[index]
    return 0, 0


def _set(reader: TranscriptReader, index: int) -> None:
    if 0 <= index < len(reader.transcript.blocks):
        reader.cursor = reader.transcript.blocks[index].id


_ROWS = 1 << 20
"""More rows than any block has."""


def row_number(reader: TranscriptReader, row: int) -> int | None:
    """Return the number of a row of the window; None below the end."""
    place = reader.viewport.locate(row)
    return None if place is None else place[0] * _ROWS + place[1]


def whole_block(reader: TranscriptReader) -> Selection | None:
    """Return all of the cursor's block."""
    index = None if reader.cursor is None else reader.transcript.position(reader.cursor)
    if index is None:
        return None
    return Selection(Offset(0, index * _ROWS), Offset(0, (index + 1) * _ROWS - 1))


def selected_text(reader: TranscriptReader, selection: Selection) -> str:
    """Return the rows as they are drawn; a missing end is that of the window."""
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
    """Return a row with some of its characters, as start and end, in the style on top of their own."""
    text = strip.text
    start, end = span
    end = len(text.rstrip()) if end == -1 else end
    left = max(MARGIN, cell_len(text[:start]))
    right = max(left, cell_len(text[:end]))
    before, inside, after = strip.crop(0, left), strip.crop(left, right), strip.crop(right)
    chosen = [Segment(words, (own or Style.null()) + style) for words, own, _ in inside]
    return Strip.join([before, Strip(chosen), after])


def _cut(text: str, start: int, end: int) -> str:
    begins = MARGIN
    while text.startswith(BAR, begins):  # of the person's messages, and of quotes
        begins += len(BAR)
    return text[max(begins, start) : None if end == -1 else end].rstrip()


Spot = tuple[int, int]
"""A match in a block: the row, and how many matches precede it."""


class MatchPosition(NamedTuple):
    """The number of the current match, from one, and how many there are."""

    number: int
    total: int


class Search:
    """The search text of one reader, and the last match."""

    def __init__(self, reader: TranscriptReader) -> None:
        self._reader = reader
        self.pattern: re.Pattern[str] | None = None
        self._at: tuple[int, Spot] | None = None
        """The block's id, and the match in it."""
        self._counts: dict[int, tuple[int, int]] = {}
        """How often the text occurs in a block of a revision."""

    def start(self, words: str) -> bool:
        """Search for another text, from the window on to the end, then before it."""
        self.pattern = re.compile(re.escape(words), re.IGNORECASE) if words else None
        self.restart()
        return self.pattern is not None and (self.go(1) or self.go(-1))

    def restart(self) -> None:
        """Note that the transcript is another one; the search text is kept."""
        self._at = None
        self._counts.clear()

    def go(self, by: int) -> bool:
        """Go to the next match (1), or the previous one (-1)."""
        if self.pattern is None:
            return False
        self._reader.settle()
        begin = self._begin()
        if begin is None:
            return False
        index, spot = begin
        return self._in_block(index, spot, by) or self._in_others(index + by, by)

    def go_round(self, by: int) -> bool:
        """Go to the first match of all (1), or the last one (-1)."""
        if self.pattern is None:
            return False
        return self._in_others(0 if by > 0 else len(self._reader.transcript.blocks) - 1, by)

    @property
    def place(self) -> MatchPosition | None:
        """The current match among all; None while there is none."""
        index = None if self._at is None else self._reader.transcript.position(self._at[0])
        if self._at is None or index is None:
            return None
        counts = [self._count(at) for at in range(len(self._reader.transcript.blocks))]
        inside = sum(spot < self._at[1] for spot in self._spots(index))
        return MatchPosition(sum(counts[:index]) + inside + 1, sum(counts))

    def mark(self, strips: list[Strip], found: Style, here: Style) -> list[Strip]:
        """Return the window's rows with the matches marked, and the current match marked differently."""
        row, nth = self._shown()
        return [
            self._marked(strip, found, here, nth if y == row else -1)
            for y, strip in enumerate(strips)
        ]

    def _marked(self, strip: Strip, found: Style, here: Style, nth: int) -> Strip:
        assert self.pattern is not None
        for at, words in enumerate(self.pattern.finditer(strip.text, MARGIN)):
            strip = highlighted(strip, words.span(), here if at == nth else found)
        return strip

    def _shown(self) -> Spot:
        """Return the window's row with the current match, and its number in that row; a row above all if none."""
        index = None if self._at is None else self._reader.transcript.position(self._at[0])
        for seen, y in self._reader.viewport.rows():
            if self._at is not None and seen == index:
                row, nth = self._at[1]
                return y + row, nth
        return -1, -1

    def _begin(self) -> tuple[int, Spot] | None:
        """Return the block to start in, and the first spot that does not count any more."""
        viewport, transcript = self._reader.viewport, self._reader.transcript
        if self._at is not None:
            index = transcript.position(self._at[0])
            if index is not None:
                return index, self._at[1]
        if viewport.index >= len(transcript.blocks):
            return None
        return viewport.index, (viewport.offset, -1)

    def _in_block(self, index: int, begin: Spot, by: int) -> bool:
        """Go to another match in the block, but only in rows that are drawn."""
        spots = [at for at in self._spots(index) if (at > begin if by > 0 else at < begin)]
        if not spots:
            return False
        self._show(index, spots[0] if by > 0 else spots[-1])
        return True

    def _in_others(self, first: int, by: int) -> bool:
        """Go to the nearest match from a block on."""
        for at in range(first, len(self._reader.transcript.blocks) if by > 0 else -1, by):
            if self._is_said(at):
                spots = self._opened(at)
                self._show(at, spots[0] if by > 0 else spots[-1])
                return True
        return False

    def _is_said(self, index: int) -> bool:
        assert self.pattern is not None
        return any(
            self.pattern.search(text) for text in _texts(self._reader.transcript.blocks[index])
        )

    def _occurrences(self, index: int) -> int:
        assert self.pattern is not None
        block = self._reader.transcript.blocks[index]
        known = self._counts.get(block.id)
        if known is None or known[0] != block.revision:
            times = sum(sum(1 for _ in self.pattern.finditer(text)) for text in _texts(block))
            known = self._counts[block.id] = block.revision, times
        return known[1]

    def _count(self, index: int) -> int:
        """Return the matches in a block: those on its rows, as far as it was drawn.

        For other blocks, and for folded text, the occurrences in the source are counted: to draw a long
        transcript only to count would take seconds.
        """
        count = self._occurrences(index)
        if not count or not self._reader.is_drawn(index):
            return count
        return len(self._spots(index)) or (count if self._is_folded(index) else 1)

    def _is_folded(self, index: int) -> bool:
        block = self._reader.transcript.blocks[index]
        return can_open(block) and self._reader.look(index).shape is not BlockShape.OPEN

    def _spots(self, index: int) -> list[Spot]:
        pattern = self.pattern
        assert pattern is not None
        return [
            (row, nth)
            for row, text in enumerate(plain(self._reader.rows(index)))
            for nth, _ in enumerate(pattern.finditer(text))
        ]

    def _opened(self, index: int) -> list[Spot]:
        """Return the spots of a block, which is opened if the matches are folded away in it.

        The first row when no row has a match: it is broken between two, or not drawn at all.
        """
        spots = self._spots(index)
        block = self._reader.transcript.blocks[index]
        if not spots and self._is_folded(index) and self._reader.toggle(block):
            spots = self._spots(index)
        return spots or [(0, 0)]

    def _show(self, index: int, spot: Spot) -> None:
        reader = self._reader
        block = reader.transcript.blocks[index]
        self._at = (block.id, spot)
        reader.cursor = block.id
        viewport = reader.viewport
        place = next((y for seen, y in viewport.rows() if seen == index), None)
        if place is None or not 0 <= place + spot[0] < viewport.height:
            viewport.show(index, spot[0])
            viewport.move(-(viewport.height // 3))


def _texts(block: Block) -> Iterator[str]:
    """Yield all texts of a block, as cheaply as possible."""
    match block:
        case SpeechBlock() | UserBlock():
            yield block.text
        case ToolBlock():
            yield block.name
            yield block.command or ""
            for part in block.shown_parts:
                match part:
                    case TextPart():
                        yield part.text
                    case DiffPart():
                        yield from (part.path, part.old or "", part.new)
                    case _:
                        pass
        case _:
            yield "\n".join(plain_lines(block))
