"""How much of a block is shown: by itself, and as the person wants it."""

from enum import Enum, auto

from quarterdeck.transcript import Block, ThoughtBlock, ToolBlock, ToolState

_RUNNING = frozenset({ToolState.PENDING, ToolState.IN_PROGRESS})


class Shape(Enum):
    """FOLDED: one line. LIVE, REASON: one line and the end of the output. OPEN: everything."""

    FOLDED = auto()
    LIVE = auto()
    REASON = auto()
    OPEN = auto()


def can_open(block: Block) -> bool:
    """Blocks that fold."""
    return isinstance(block, ToolBlock | ThoughtBlock)


def natural(block: Block) -> Shape:
    """The shape of a block that nobody opened or folded."""
    match block:
        case ToolBlock() if block.state in _RUNNING:
            return Shape.LIVE
        case ToolBlock() if block.state is ToolState.FAILED:
            return Shape.REASON
        case _:
            return Shape.FOLDED


class Shapes:
    """The shapes of a transcript's blocks.

    A block that the person opened or folded stays so. A running call that ends while somebody reads
    around it keeps its rows until it is out of sight, so that nothing moves under their eyes.
    """

    def __init__(self) -> None:
        self._wanted: dict[int, Shape] = {}
        self._held: frozenset[int] = frozenset()

    def of(self, block: Block) -> Shape:
        """The shape to draw a block in."""
        wanted = self._wanted.get(block.id)
        if wanted is not None:
            return wanted
        shape = natural(block)
        return Shape.LIVE if shape is Shape.FOLDED and block.id in self._held else shape

    def toggle(self, block: Block) -> None:
        """Opens a block in full, or folds it when it is open."""
        is_open = self.of(block) is Shape.OPEN
        self._wanted[block.id] = Shape.FOLDED if is_open else Shape.OPEN

    @property
    def wanted(self) -> dict[int, Shape]:
        """What the person opened or folded, by block."""
        return dict(self._wanted)

    def want(self, wanted: dict[int, Shape]) -> None:
        """What a person opened or folded before."""
        self._wanted = dict(wanted)

    def hold(self, blocks: frozenset[int]) -> bool:
        """Only these keep the rows that they would lose; True when others may lose theirs now."""
        released = bool(self._held - blocks)
        self._held = blocks
        return released

    def clear(self) -> None:
        """Another transcript."""
        self._wanted.clear()
        self._held = frozenset()
