"""Finding words in a transcript: what is folded away as well."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from quarterdeck.transcript import (
    Block,
    DiffPart,
    SpeechBlock,
    TextPart,
    ToolBlock,
    UserBlock,
    plain_lines,
)
from quarterdeck.tui.transcript_view import selecting
from quarterdeck.tui.transcript_view.drawings import MARGIN
from quarterdeck.tui.transcript_view.lines import plain
from quarterdeck.tui.transcript_view.reader import Reader
from quarterdeck.tui.transcript_view.shapes import Shape, can_open

Spot = tuple[int, int]
"""Where words stand in a block: the row, and how often they stood in it before."""


class Place(NamedTuple):
    """Which one is shown, from one, and how many there are."""

    number: int
    total: int


class Search:
    """The words that one reader looks for, and where they were found last."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.pattern: re.Pattern[str] | None = None
        self._at: tuple[int, Spot] | None = None
        """The block's id, and where in it."""
        self._said: dict[int, tuple[int, int]] = {}
        """How often the words are said in a block of a revision."""

    def start(self, words: str) -> bool:
        """Looks for other words, from the window on to the end, then before it."""
        self.pattern = re.compile(re.escape(words), re.IGNORECASE) if words else None
        self.restart()
        return self.pattern is not None and (self.go(1) or self.go(-1))

    def restart(self) -> None:
        """The transcript is another one; what is looked for is the same."""
        self._at = None
        self._said.clear()

    def go(self, by: int) -> bool:
        """The next place (1), or the one before (-1)."""
        if self.pattern is None:
            return False
        self._reader.settle()
        begin = self._begin()
        if begin is None:
            return False
        index, spot = begin
        return self._in_block(index, spot, by) or self._in_others(index + by, by)

    def go_round(self, by: int) -> bool:
        """The first place of all (1), or the last one (-1)."""
        if self.pattern is None:
            return False
        return self._in_others(0 if by > 0 else len(self._reader.transcript.blocks) - 1, by)

    @property
    def place(self) -> Place | None:
        """Which of all places is shown; None while none is."""
        index = None if self._at is None else self._reader.transcript.position(self._at[0])
        if self._at is None or index is None:
            return None
        counts = [self._count(at) for at in range(len(self._reader.transcript.blocks))]
        inside = sum(spot < self._at[1] for spot in self._spots(index))
        return Place(sum(counts[:index]) + inside + 1, sum(counts))

    def mark(self, strips: list[Strip], found: Style, here: Style) -> list[Strip]:
        """The window's rows with the words told apart, and the place that is shown from others."""
        row, nth = self._shown()
        return [
            self._marked(strip, found, here, nth if y == row else -1)
            for y, strip in enumerate(strips)
        ]

    def _marked(self, strip: Strip, found: Style, here: Style, nth: int) -> Strip:
        assert self.pattern is not None
        for at, words in enumerate(self.pattern.finditer(strip.text, MARGIN)):
            strip = selecting.highlighted(strip, words.span(), here if at == nth else found)
        return strip

    def _shown(self) -> Spot:
        """The window's row with the place, and which of that row; a row above all if none is."""
        index = None if self._at is None else self._reader.transcript.position(self._at[0])
        for seen, y in self._reader.viewport.rows():
            if self._at is not None and seen == index:
                row, nth = self._at[1]
                return y + row, nth
        return -1, -1

    def _begin(self) -> tuple[int, Spot] | None:
        """The block to begin in, and the spot that does not count any more."""
        viewport, transcript = self._reader.viewport, self._reader.transcript
        if self._at is not None:
            index = transcript.position(self._at[0])
            if index is not None:
                return index, self._at[1]
        if viewport.index >= len(transcript.blocks):
            return None
        return viewport.index, (viewport.offset, -1)

    def _in_block(self, index: int, begin: Spot, by: int) -> bool:
        """Another spot of the block; only in rows that are drawn."""
        spots = [at for at in self._spots(index) if (at > begin if by > 0 else at < begin)]
        if not spots:
            return False
        self._show(index, spots[0] if by > 0 else spots[-1])
        return True

    def _in_others(self, first: int, by: int) -> bool:
        """The nearest block from an index on."""
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

    def _times_said(self, index: int) -> int:
        assert self.pattern is not None
        block = self._reader.transcript.blocks[index]
        known = self._said.get(block.id)
        if known is None or known[0] != block.revision:
            times = sum(sum(1 for _ in self.pattern.finditer(text)) for text in _texts(block))
            known = self._said[block.id] = block.revision, times
        return known[1]

    def _count(self, index: int) -> int:
        """The places of a block: those on its rows, as far as it was drawn.

        Of others, and of what is folded away, as often as it is said there: to draw a long
        transcript only to count would take seconds.
        """
        said = self._times_said(index)
        if not said or not self._reader.is_drawn(index):
            return said
        return len(self._spots(index)) or (said if self._is_folded(index) else 1)

    def _is_folded(self, index: int) -> bool:
        block = self._reader.transcript.blocks[index]
        return can_open(block) and self._reader.look(index).shape is not Shape.OPEN

    def _spots(self, index: int) -> list[Spot]:
        pattern = self.pattern
        assert pattern is not None
        return [
            (row, nth)
            for row, text in enumerate(plain(self._reader.rows(index)))
            for nth, _ in enumerate(pattern.finditer(text))
        ]

    def _opened(self, index: int) -> list[Spot]:
        """The spots of a block that is opened if the words are folded away in it.

        The first row when they are on none: they are broken between two, or not drawn at all.
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
    """Everything that is said in a block, as cheaply as can be."""
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
