"""Finding words in a transcript: what is folded away as well."""

import re
from collections.abc import Iterator

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
from quarterdeck.tui.transcript_view.lines import plain
from quarterdeck.tui.transcript_view.reader import Reader
from quarterdeck.tui.transcript_view.shapes import Shape


class Search:
    """The words that one reader looks for, and where they were found last."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.pattern: re.Pattern[str] | None = None
        self._at: tuple[int, int] | None = None
        """The block, and the row in it."""

    def start(self, words: str) -> bool:
        """Looks for other words, from the window on to the end, then from the start."""
        self.pattern = re.compile(re.escape(words), re.IGNORECASE) if words else None
        self._at = None
        return self.pattern is not None and (self.go(1) or self.go(-1))

    def go(self, by: int) -> bool:
        """The next place (1), or the one before (-1)."""
        if self.pattern is None:
            return False
        self._reader.settle()
        begin = self._begin()
        if begin is None:
            return False
        index, row = begin
        return self._in_block(index, row, by) or self._in_others(index, by)

    def mark(self, strip: Strip, style: Style) -> Strip:
        """A row with the words told apart."""
        for found in self.pattern.finditer(strip.text) if self.pattern else ():
            strip = selecting.highlighted(strip, found.span(), style)
        return strip

    def _begin(self) -> tuple[int, int] | None:
        """The block to begin in, and the row that does not count any more."""
        viewport, transcript = self._reader.viewport, self._reader.transcript
        if self._at is not None:
            index = transcript.position(self._at[0])
            if index is not None:
                return index, self._at[1]
        if viewport.index >= len(transcript.blocks):
            return None
        return viewport.index, viewport.offset - 1

    def _in_block(self, index: int, row: int, by: int) -> bool:
        """Another row of the block; only those that are drawn."""
        rows = [at for at in self._rows(index) if (at > row if by > 0 else at < row)]
        if not rows:
            return False
        self._show(index, rows[0] if by > 0 else rows[-1])
        return True

    def _in_others(self, index: int, by: int) -> bool:
        blocks = self._reader.transcript.blocks
        pattern = self.pattern
        assert pattern is not None
        for at in range(index + by, len(blocks) if by > 0 else -1, by):
            if any(pattern.search(text) for text in _texts(blocks[at])):
                rows = self._opened(at)
                self._show(at, rows[0] if by > 0 else rows[-1])
                return True
        return False

    def _rows(self, index: int) -> list[int]:
        pattern = self.pattern
        assert pattern is not None
        return [
            at for at, text in enumerate(plain(self._reader.rows(index))) if pattern.search(text)
        ]

    def _opened(self, index: int) -> list[int]:
        """The rows with the words, of a block that is opened if they are folded away in it.

        The first row when they are on none: they are broken between two, or not drawn at all.
        """
        rows = self._rows(index)
        if not rows:
            block = self._reader.transcript.blocks[index]
            if self._reader.look(index).shape is not Shape.OPEN and self._reader.toggle(block):
                rows = self._rows(index)
        return rows or [0]

    def _show(self, index: int, row: int) -> None:
        reader = self._reader
        block = reader.transcript.blocks[index]
        self._at = (block.id, row)
        reader.cursor = block.id
        viewport = reader.viewport
        place = next((y for seen, y in viewport.rows() if seen == index), None)
        if place is None or not 0 <= place + row < viewport.height:
            viewport.show(index, row)
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
