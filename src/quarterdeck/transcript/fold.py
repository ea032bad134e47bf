"""The fold: agent events of one chat become blocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from quarterdeck.transcript import acp
from quarterdeck.transcript.apply import Fold
from quarterdeck.transcript.blocks import Block, QuestionBlock, ToolBlock, Turn
from quarterdeck.transcript.merge import join
from quarterdeck.transcript.steps import NoteAdded, Step
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.history import AgentEvent

Dialect = Callable[[AgentEvent], Sequence[Step] | None]
"""Reads an event; None when the event is unknown to it."""

DIALECTS: tuple[Dialect, ...] = (acp.read,)

SLICE = 2_000
"""Events that are folded in some 20 ms."""


@dataclass(frozen=True, slots=True)
class BlockChanges:
    """Changes of the blocks, by id. Empty: nothing to draw.

    `older`: the added blocks are before the others, and changed ones may have moved.
    """

    added: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    older: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.older)


class Transcript:
    """The blocks of one chat.

    Events are appended as they come and prepended page by page; the blocks are the same as if all
    had been folded in one go, wherever the page boundaries lie.
    """

    def __init__(self, events: Iterable[AgentEvent] = ()) -> None:
        self._ids = count(1)
        self._fold = Fold(self._ids)
        self._positions: dict[int, int] = {}
        _fold_all(self._fold, events)

    @classmethod
    def in_slices(cls, events: Sequence[AgentEvent], size: int = SLICE) -> Iterator["Transcript"]:
        """Fold many events a slice at a time, so that other tasks can run in between.

        Yields the same transcript after each slice, and at least once; it is complete at the end.
        """
        transcript = cls(events[:size])
        yield transcript
        for start in range(size, len(events), size):
            _fold_all(transcript._fold, events[start : start + size])
            yield transcript

    @property
    def blocks(self) -> Sequence[Block]:
        """All blocks, oldest first. Live: read it, do not keep or change it."""
        return self._fold.blocks

    @property
    def turn(self) -> Turn:
        """The newest turn."""
        return self._fold.turn

    @property
    def open_questions(self) -> list[QuestionBlock]:
        """Questions that wait for an answer, oldest first."""
        return [question for question in self._fold.questions.values() if question.is_open]

    def tool(self, tool_id: str) -> ToolBlock | None:
        """Return the tool call of this id."""
        return self._fold.tools.get(tool_id)

    def block(self, block_id: int) -> Block | None:
        """Return the block of this id."""
        position = self.position(block_id)
        return None if position is None else self._fold.blocks[position]

    def position(self, block_id: int) -> int | None:
        """Return the index of a block in `blocks`."""
        blocks = self._fold.blocks
        for at in range(len(self._positions), len(blocks)):
            self._positions[blocks[at].id] = at
        return self._positions.get(block_id)

    def append(self, event: AgentEvent) -> BlockChanges:
        """Fold the next event."""
        fold = self._fold
        before = len(fold.blocks)
        touched = fold.apply(_read(event), event.timestamp)
        added = tuple(block.id for block in fold.blocks[before:])
        return BlockChanges(added, tuple(i for i in dict.fromkeys(touched) if i not in added))

    def prepend(self, events: Iterable[AgentEvent]) -> BlockChanges:
        """Fold a page of events, in order, that came right before everything known so far."""
        older = Fold(self._ids)
        _fold_all(older, events)
        known = {block.id for block in self._fold.blocks}
        self._fold, changed, removed = join(older, self._fold)
        self._positions.clear()
        added = tuple(block.id for block in self._fold.blocks if block.id not in known)
        return BlockChanges(added, tuple(changed), tuple(removed), older=True)


def _fold_all(fold: Fold, events: Iterable[AgentEvent]) -> None:
    for event in events:
        fold.apply(_read(event), event.timestamp)


def _read(event: AgentEvent) -> Sequence[Step]:
    for dialect in DIALECTS:
        steps = dialect(event)
        if steps is not None:
            return steps
    return (NoteAdded(_name(event)),)


def _name(event: AgentEvent) -> str:
    """Return an unknown event's line: its type and the kind of its payload."""
    payload = event.payload
    kind = payload.get("sessionUpdate") or payload.get("type")
    name = one_line(event.type) or "event"
    return f"{name}: {one_line(kind)}" if isinstance(kind, str) and kind else name
