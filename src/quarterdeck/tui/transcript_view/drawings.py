"""Cache of drawn blocks, valid while neither they nor their look changes."""

from collections import OrderedDict
from dataclasses import dataclass

from textual.strip import Strip

from quarterdeck.transcript import Block, MessageBlock, QuestionBlock, ToolBlock, Transcript
from quarterdeck.tui.kit.spans import Line, SpanPainter
from quarterdeck.tui.transcript_view.layout import BlockStyle, rows_of
from quarterdeck.tui.transcript_view.markdown import Prose

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
