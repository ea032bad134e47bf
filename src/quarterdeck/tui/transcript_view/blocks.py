"""Shapes of blocks, and drawings that several kinds of blocks share."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto

from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    Part,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    ToolState,
)
from quarterdeck.transcript.export import diff_lines, unfenced
from quarterdeck.tui.kit.spans import Emphasis, Line, Span, TextRole, fit, line, wrap, wrap_hard
from quarterdeck.tui.transcript_view.markdown import code_rows, linked

_LONGEST_ROW = 4_000
_LONGEST_DIFF = 200_000


def diff_rows(part: DiffPart, width: int) -> list[Line]:
    """Return the file and how many lines were added and removed, then the unified diff."""
    if len(part.old or "") + len(part.new) > _LONGEST_DIFF:
        return [line(f"{part.path}: too large to compare here", TextRole.DIM)]
    changes = diff_lines(part)
    added = sum(row.startswith("+") for row in changes)
    removed = sum(row.startswith("-") for row in changes)
    head: Line = (
        Span(part.path, TextRole.HEADING, Emphasis.BOLD),
        Span(f"  +{added}", TextRole.ADDED),
        Span(f" \u2212{removed}", TextRole.REMOVED),
    )
    rows = [fit(head, width)]
    for change in changes:
        rows += wrap_hard([Span(change[:_LONGEST_ROW], _role(change))], width)
    return rows


def _role(change: str) -> TextRole:
    match change[:1]:
        case "+":
            return TextRole.ADDED
        case "-":
            return TextRole.REMOVED
        case "@":
            return TextRole.DIM
        case _:
            return TextRole.CODE


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")


def typed_rows(text: str, width: int) -> list[Line]:
    """Return the rows of a message; code up to its closing fence, or to the end where there is none."""
    rows: list[Line] = []
    for source, info in _pieces(text):
        if info is None:
            rows += _typed(source, width)
        else:
            rows += code_rows(source, info, width)
    return rows


def _typed(text: str, width: int) -> list[Line]:
    return [row for part in text.split("\n") for row in wrap(linked(part, TextRole.PROMPT), width)]


def _pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield text and code in turn, code with the words after its opening fence."""
    lines: list[str] = []
    fence, info = "", ""
    for row in text.split("\n"):
        match = _FENCE.match(row)
        if fence and match and match[1].startswith(fence) and not match[2].strip():
            yield "\n".join(lines), info
            lines, fence = [], ""
        elif not fence and match:
            if lines:
                yield "\n".join(lines), None
            lines, fence, info = [], match[1], match[2]
        else:
            lines.append(row)
    if lines or fence:
        yield "\n".join(lines), info if fence else None


_RUNNING = frozenset({ToolState.PENDING, ToolState.IN_PROGRESS})


class BlockShape(Enum):
    """FOLDED: one line. LIVE, REASON: one line and the end of the output. OPEN: everything."""

    FOLDED = auto()
    LIVE = auto()
    REASON = auto()
    OPEN = auto()


def can_open(block: Block) -> bool:
    """Return whether a block can be folded."""
    return isinstance(block, ToolBlock | ThoughtBlock)


def natural(block: Block, calls: str = "folded") -> BlockShape:
    """Return the shape of a block that the user has neither opened nor folded.

    `calls` says what ended calls show: `folded`, `edits`, or `output`, which includes edits.
    """
    match block:
        case ToolBlock() if block.state in _RUNNING:
            return BlockShape.LIVE
        case ToolBlock() if block.state is ToolState.FAILED or calls == "output":
            return BlockShape.REASON
        case ToolBlock() if calls == "edits" and any(
            isinstance(part, DiffPart) for part in block.parts or ()
        ):
            return BlockShape.REASON
        case _:
            return BlockShape.FOLDED


class Shapes:
    """The shapes of a transcript's blocks.

    A block that the user opened or folded stays so. A running call that ends while somebody reads
    around it keeps its rows until it is out of view, so that no animation while they read.
    """

    def __init__(self) -> None:
        self.calls = "edits"
        """What ended calls show; see `natural`."""
        self._chosen_shapes: dict[int, BlockShape] = {}
        self._held: frozenset[int] = frozenset()

    def of(self, block: Block) -> BlockShape:
        """Return the shape to draw a block in."""
        wanted = self._chosen_shapes.get(block.id)
        if wanted is not None:
            return wanted
        shape = natural(block, self.calls)
        return BlockShape.LIVE if shape is BlockShape.FOLDED and block.id in self._held else shape

    def toggle(self, block: Block) -> None:
        """Open a block in full, or fold it when it is open."""
        is_open = self.of(block) is BlockShape.OPEN
        self._chosen_shapes[block.id] = BlockShape.FOLDED if is_open else BlockShape.OPEN

    @property
    def wanted(self) -> dict[int, BlockShape]:
        """The blocks that the user opened or folded."""
        return dict(self._chosen_shapes)

    def want(self, wanted: dict[int, BlockShape]) -> None:
        """Set which blocks the user opened or folded before."""
        self._chosen_shapes = dict(wanted)

    def hold(self, blocks: frozenset[int]) -> bool:
        """Let only these keep the rows that they would lose; return whether others may lose theirs."""
        released = bool(self._held - blocks)
        self._held = blocks
        return released

    def clear(self) -> None:
        """Forget the shapes of the previous transcript."""
        self._chosen_shapes.clear()
        self._held = frozenset()


_LARGEST_CHANGE = 40_000
"""Characters that are compared by default."""


def glance(block: ToolBlock, width: int, most: int) -> list[Line]:
    """Return at most `most` rows; none when there is nothing to see yet."""
    parts = block.shown_parts
    changes = [part for part in parts if isinstance(part, DiffPart)]
    return _change(changes[0], width, most) if changes else _tail(parts, width, most)


def _tail(parts: Sequence[Part], width: int, most: int) -> list[Line]:
    rows: list[Line] = []
    for part in reversed(parts):
        if isinstance(part, TextPart) and len(rows) < most:
            rows = [*_last_rows(part.text, width, most - len(rows)), *rows]
    return rows


def _last_rows(text: str, width: int, most: int) -> list[Line]:
    text = unfenced(text).rstrip()
    if not text:
        return []
    rows: list[Line] = []
    for part in text.rsplit("\n", most)[-most:]:
        # Of an endless line only the visible part is wrapped.
        rows += wrap_hard(linked(part[-width * most :], TextRole.DIM), width)
    return rows[-most:]


def _change(part: DiffPart, width: int, most: int) -> list[Line]:
    if len(part.old or "") + len(part.new) > _LARGEST_CHANGE:
        return [line(part.path, TextRole.DIM)]
    rows = diff_rows(part, width)
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], line(f"\u2026 {len(rows) - most + 1:,} more lines", TextRole.DIM)]
