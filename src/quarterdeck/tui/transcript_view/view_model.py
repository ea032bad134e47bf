"""The reader of a transcript: the visible part, the cursor, and the open blocks.

The logic of the view, without a screen: the widget passes size, keys and changes,
and shows what `strip` returns.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len
from textual.strip import Strip

from quarterdeck.transcript.blocks import Block, MessageBlock, QuestionBlock, ToolBlock
from quarterdeck.transcript.fold import BlockChanges, Transcript
from quarterdeck.tui.kit.spans import Line, Span, SpanPainter
from quarterdeck.tui.transcript_view.blocks import BlockShape, Shapes, can_open
from quarterdeck.tui.transcript_view.layout import BlockStyle, begins_reply, guess, has_gap, rows_of
from quarterdeck.tui.transcript_view.markdown import Prose
from quarterdeck.tui.transcript_view.viewport import Heights, Viewport

MARGIN = 2
"""Columns left of the text: the cursor's bar and a blank."""
RIGHT = 1
"""Columns right of the text: a blank before the scroll bar."""
_KEPT = 600


@dataclass(slots=True)
class BlockDrawing:
    """One block's rows, and their strips as far as they were needed."""

    revision: int
    look: BlockStyle
    rows: list[Line]
    strips: list[Strip | None]
    prose: Prose


class Drawings:
    """Draws blocks; caches some twenty screens of them."""

    def __init__(self, painter: SpanPainter) -> None:
        self._painter = painter
        self._kept: OrderedDict[int, BlockDrawing] = OrderedDict()

    def clear(self) -> None:
        """Forget the drawings of the previous transcript or theme."""
        self._painter.reset()
        self._kept.clear()

    def drop(self, block_id: int) -> None:
        """Note that a block was removed."""
        self._kept.pop(block_id, None)

    def get(self, block: Block, look: BlockStyle, transcript: Transcript) -> BlockDrawing:
        """Return the drawing of a block in its current state."""
        kept = self._kept.get(block.id)
        if kept is not None and kept.revision == block.revision and kept.look == look:
            self._kept.move_to_end(block.id)
            return kept
        drawing = self._draw(block, look, transcript, kept)
        self._kept[block.id] = drawing
        self._kept.move_to_end(block.id)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return drawing

    def has(self, block: Block, look: BlockStyle) -> bool:
        """Return whether the drawing of a block's current state is cached."""
        kept = self._kept.get(block.id)
        return kept is not None and kept.revision == block.revision and kept.look == look

    def strip(self, drawing: BlockDrawing, row: int) -> Strip:
        """Return a row of a drawing, with its margin."""
        strip = drawing.strips[row]
        if strip is None:
            width = drawing.look.width + MARGIN + RIGHT
            strip = self._painter.strip(drawing.rows[row], width, MARGIN)
            drawing.strips[row] = strip
        return strip

    def _draw(
        self, block: Block, look: BlockStyle, transcript: Transcript, kept: BlockDrawing | None
    ) -> BlockDrawing:
        prose = kept.prose if kept and kept.look.width == look.width else Prose(look.width)
        rows = rows_of(block, look, _tool_of(block, transcript), prose)
        strips: list[Strip | None] = [None] * len(rows)
        if kept and isinstance(block, MessageBlock) and kept.look.width == look.width:
            # A growing message: rows that are the same keep their strips, so they are not sent again.
            for at, (old, new) in enumerate(zip(kept.rows, rows, strict=False)):
                if old is not new and old != new:
                    break
                strips[at] = kept.strips[at]
        return BlockDrawing(block.revision, look, rows, strips, prose)


def _tool_of(block: Block, transcript: Transcript) -> ToolBlock | None:
    if isinstance(block, QuestionBlock) and block.tool_id is not None:
        return transcript.tool(block.tool_id)
    return None


class _VisibleBlock(NamedTuple):
    """A block in the window: the rows where its text starts, and where it ends."""

    block_id: int
    start: int
    end: int


class TranscriptReader:
    """State of one reader over one transcript."""

    def __init__(self, transcript: Transcript, painter: SpanPainter) -> None:
        self.transcript = transcript
        self.drawings = Drawings(painter)
        self.viewport = Viewport(self._measure)
        self.cursor: int | None = None
        self.working_since: datetime | None = None
        self._speaker = ""
        self._width = 2
        self._shapes = Shapes()
        self._below: set[int] = set()
        self._ids: list[int] = []
        """Of the blocks whose heights are known or guessed."""
        self._seen: list[_VisibleBlock] = []
        self._top: tuple[int, int] | None = None
        """The tool call at the top as last seen, and its height."""

    # Size and changes.

    def resize(self, width: int, height: int) -> None:
        """Set the window's size in cells, and keep the reader's place."""
        self.viewport.height = height
        text_width = max(4, width - MARGIN - RIGHT)
        if text_width == self._width and len(self.viewport.heights):
            return
        self._width = text_width
        self._top = None
        self._guess_all()

    def restart(self, transcript: Transcript) -> None:
        """Restart with another transcript, from its end."""
        self.transcript = transcript
        self.drawings.clear()
        self._shapes.clear()
        self._below.clear()
        self.cursor = None
        self.viewport.following = True
        self._guess_all()

    def take(self, change: BlockChanges) -> None:
        """Apply a change of the transcript."""
        for block_id in change.removed:
            self.drawings.drop(block_id)
        if change.older:
            self._take_older(change)
            return
        self._take_newer(change)

    def settle(self) -> None:
        """Lay out the visible part."""
        self._catch_up()
        self._keep_place()
        self.viewport.settle()
        if self._shapes.hold(self._live()):
            self.viewport.settle()
        if self.viewport.following:
            self._below.clear()
        elif self._below:
            self._below = {block_id for block_id in self._below if self._ends_below(block_id)}
        self._seen = self._see()
        self._top = self._at_top()

    @property
    def new_below(self) -> int:
        """Blocks below the window that are new or changed."""
        return len(self._below)

    # The visible part.

    def strips(self) -> list[Strip]:
        """Return the strips of the window, from its top; fewer when the end comes before its bottom."""
        viewport = self.viewport
        strips: list[Strip] = []
        for index, row in viewport.rows():
            drawing = self._drawing(index)
            end = min(len(drawing.rows), viewport.height - row)
            strips += (self.drawings.strip(drawing, n) for n in range(max(0, -row), end))
        return strips

    def rows(self, index: int) -> list[Line]:
        """Return all rows of the block at an index."""
        return self._drawing(index).rows

    def is_drawn(self, index: int) -> bool:
        """Return whether the rows of the block at an index are known without drawing it."""
        return self.drawings.has(self.transcript.blocks[index], self.look(index))

    def cursor_rows(self) -> range:
        """Return the rows of the window that the cursor's block takes, without the blank before it."""
        for index, row in self.viewport.rows():
            if self.transcript.blocks[index].id == self.cursor:
                end = row + self.viewport.heights[index]
                start = row + self.look(index).gap
                return range(max(0, start), min(end, self.viewport.height))
        return range(0)

    def block_at(self, row: int) -> Block | None:
        """Return the block at a row of the window."""
        place = self.viewport.locate(row)
        return None if place is None else self.transcript.blocks[place[0]]

    def span_at(self, column: int, row: int) -> Span | None:
        """Return the text at a cell of the window."""
        place = self.viewport.locate(row)
        if place is None:
            return None
        rows = self._drawing(place[0]).rows
        left = column - MARGIN
        for span in rows[place[1]] if place[1] < len(rows) else ():
            left -= cell_len(span.text)
            if left < 0:
                return span
        return None

    # Opening.

    def toggle(self, block: Block) -> bool:
        """Open or fold a block, keeping its first line in place; False when it does not fold."""
        index = self.transcript.position(block.id)
        if index is None or not can_open(block):
            return False
        self._shapes.toggle(block)
        viewport = self.viewport
        viewport.following = False
        if viewport.index == index and viewport.offset:
            viewport.offset = 0
        viewport.settle()
        return True

    @property
    def opened(self) -> dict[int, BlockShape]:
        """The blocks that the user opened or folded."""
        return self._shapes.wanted

    def show_speaker(self, name: str) -> bool:
        """Set the agent's name above what it says, empty for none; return whether it is another."""
        if name == self._speaker:
            return False
        self._speaker = name
        self._guess_all()
        return True

    def show_calls(self, calls: str) -> None:
        """Set what ended calls show; see `natural`."""
        if calls != self._shapes.calls:
            self._shapes.calls = calls
            self._guess_all()

    def open_again(self, wanted: dict[int, BlockShape]) -> None:
        """Restore what was open and folded before."""
        self._shapes.want(wanted)
        self._guess_all()

    # Inside.

    def look(self, index: int) -> BlockStyle:
        """Return how to draw the block at an index."""
        blocks = self.transcript.blocks
        block = blocks[index]
        gap = index > 0 and has_gap(block, blocks[index - 1])
        return BlockStyle(
            width=self._width,
            shape=self._shapes.of(block),
            gap=gap,
            speaker=self._speaker if begins_reply(blocks, index) else "",
            working_since=self.working_since if index == len(blocks) - 1 else None,
        )

    def _drawing(self, index: int) -> BlockDrawing:
        block = self.transcript.blocks[index]
        return self.drawings.get(block, self.look(index), self.transcript)

    def _measure(self, index: int) -> int:
        return len(self._drawing(index).rows)

    def _guess(self, index: int) -> int:
        block = self.transcript.blocks[index]
        return guess(block, self._width, self._shapes.of(block)) + (index > 0)

    def _guess_all(self) -> None:
        width = self._width
        shape = self._shapes.of
        self._ids = [block.id for block in self.transcript.blocks]
        self.viewport.heights = Heights(
            guess(block, width, shape(block)) + 1 for block in self.transcript.blocks
        )

    def _put_before(self, removed: set[int]) -> None:
        """Insert the heights of older blocks; the others keep theirs, except those removed."""
        blocks = self.transcript.blocks
        pairs = zip(self._ids, self.viewport.heights, strict=True)
        kept = [(block_id, height) for block_id, height in pairs if block_id not in removed]
        if kept and kept[-1][0] != blocks[-1].id:
            self._guess_all()
            return
        older = blocks[: len(blocks) - len(kept)]
        shape = self._shapes.of
        guesses = [guess(block, self._width, shape(block)) + 1 for block in older]
        self._ids = [block.id for block in older] + [block_id for block_id, _ in kept]
        self.viewport.heights = Heights(guesses + [height for _, height in kept])

    def _catch_up(self) -> None:
        """Add blocks that were appended since the heights were last updated."""
        heights = self.viewport.heights
        blocks = self.transcript.blocks
        for index in range(len(heights), len(blocks)):
            self._ids.append(blocks[index].id)
            heights.append(self._guess(index))

    def _take_newer(self, change: BlockChanges) -> None:
        self._catch_up()
        if self.viewport.following:
            return
        below = (*change.added, *change.changed)
        self._below.update(block_id for block_id in below if self._ends_below(block_id))

    def _ends_below(self, block_id: int) -> bool:
        index = self.transcript.position(block_id)
        if index is None:
            return False
        viewport = self.viewport
        end = viewport.heights.before(index + 1) - viewport.y
        return end > viewport.height

    def _take_older(self, change: BlockChanges) -> None:
        """Keep the visible lines in place while a page is inserted before them."""
        moved = set(change.changed)
        self._put_before(moved.union(change.removed))
        if self.viewport.following or not self._seen:
            return
        kept = (seen for seen in self._seen if seen.block_id not in moved)
        anchor = next(kept, None)
        if anchor is not None:
            self._put(anchor.block_id, anchor.start, at_end=False)
        else:
            self._put(self._seen[0].block_id, self._seen[0].end, at_end=True)

    def _put(self, block_id: int, row: int, *, at_end: bool) -> None:
        """Scroll so that a block's text starts, or ends, at a row of the window."""
        index = self.transcript.position(block_id)
        if index is None:
            return
        viewport = self.viewport
        viewport.index, viewport.offset = index, 0
        viewport.move((self._measure(index) if at_end else self.look(index).lead) - row)

    def _live(self) -> frozenset[int]:
        """Return the calls whose rows are being read."""
        if self.viewport.following:
            return frozenset()
        seen = (self.transcript.blocks[index] for index, _ in self.viewport.rows())
        return frozenset(block.id for block in seen if self._shapes.of(block) is BlockShape.LIVE)

    def _keep_place(self) -> None:
        """Keep the position when a call that starts above the window grows or shrinks."""
        viewport = self.viewport
        top = self._at_top()
        if top is None or top != self._top or viewport.following or not viewport.offset:
            return
        more = self._measure(viewport.index) - top[1]
        if more and top[1] - viewport.offset < viewport.height:
            viewport.heights[viewport.index] += more
            viewport.move(more)

    def _at_top(self) -> tuple[int, int] | None:
        viewport = self.viewport
        if viewport.index >= len(viewport.heights):
            return None
        block = self.transcript.blocks[viewport.index]
        return (block.id, viewport.heights[viewport.index]) if can_open(block) else None

    def _see(self) -> list[_VisibleBlock]:
        blocks = self.transcript.blocks
        heights = self.viewport.heights
        return [
            _VisibleBlock(blocks[index].id, row + self.look(index).lead, row + heights[index])
            for index, row in self.viewport.rows()
        ]
