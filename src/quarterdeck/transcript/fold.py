"""The fold: agent events of one chat become blocks.

Two folded stretches of events are joined as if they had been folded in one go. A block that started on
the older stretch and continues in the newer one keeps the newer one's id (so that what the reader
opened stays open), at the older one's place.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from quarterdeck.transcript import acp
from quarterdeck.transcript.apply import FINISHED, Fold, overlay
from quarterdeck.transcript.blocks import (
    Block,
    EchoBlock,
    PlanBlock,
    QuestionBlock,
    SpeechBlock,
    ToolBlock,
    Turn,
)
from quarterdeck.transcript.steps import NoteAdded, Step
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.history import AgentEvent

_Moves = dict[int, Block]
"""Blocks of the newer stretch by the id of the older block whose place they take."""


def join(older: Fold, newer: Fold) -> tuple[Fold, list[int], list[int]]:
    """Return the joined fold (the newer one, grown), and the ids of changed and of removed blocks."""
    moves: _Moves = {}
    removed = _drop_echoes(older, newer)
    plans = _join_turns(older, newer)
    _join_tools(older, newer, moves)
    _join_questions(older, newer, moves)
    _join_speech(older, newer, moves)
    if plans is not None:
        moves[plans[0].id] = plans[1]
    _place(older, newer, moves, removed)
    _join_ends(older, newer)
    for block in moves.values():
        block.revision += 1
    return newer, [block.id for block in moves.values()], removed


def _drop_echoes(older: Fold, newer: Fold) -> list[int]:
    if older.turn.message_id is None:
        return []
    return [
        block.id
        for block in newer.blocks
        if isinstance(block, EchoBlock) and block.turn is newer.head_turn
    ]


def _join_turns(older: Fold, newer: Fold) -> tuple[PlanBlock, PlanBlock] | None:
    """Join the turn at the seam; return its two plans, where both stretches have one.

    The turn that the older stretch ends in is the one that the newer starts in.
    """
    before, turn = older.turn, newer.head_turn
    turn.message_id = before.message_id
    turn.started_at = before.started_at
    # Without a reason the newer part was only closed by the next prompt.
    if before.ended_at is not None and turn.stop_reason is None:
        turn.ended_at, turn.stop_reason = before.ended_at, before.stop_reason
    if before.ended_at is not None:
        for question in newer.questions.values():
            question.after_turn |= question.turn is turn
    for block in older.blocks:
        if block.turn is before:
            block.turn = turn
    for tool in before.running.values():
        if turn.ended_at is None:
            turn.running.setdefault(tool.tool_id, tool)
    if before.plan is None:
        return None
    if turn.plan is None:
        turn.plan = before.plan
        return None
    turn.plan.at = before.plan.at
    return before.plan, turn.plan


def _join_tools(older: Fold, newer: Fold, moves: _Moves) -> None:
    for tool_id, before in older.tools.items():
        tool = newer.tools.get(tool_id)
        if tool is None:
            newer.tools[tool_id] = before
            continue
        _join_tool(before, tool)
        moves[before.id] = tool


def _join_tool(before: ToolBlock, tool: ToolBlock) -> None:
    joined = ToolBlock(id=0, turn=before.turn, at=before.at, tool_id=tool.tool_id)
    overlay(joined, before)
    overlay(joined, tool)
    overlay(tool, joined)
    tool.turn.running.pop(tool.tool_id, None)
    tool.at, tool.turn = before.at, before.turn
    tool.ended_at = before.ended_at or tool.ended_at
    tool.turn.running.pop(tool.tool_id, None)
    if tool.status not in FINISHED and tool.turn.ended_at is None:
        tool.turn.running[tool.tool_id] = tool


def _join_questions(older: Fold, newer: Fold, moves: _Moves) -> None:
    questions = dict(older.questions)
    for request_id, question in newer.questions.items():
        before = questions.get(request_id)
        questions[request_id] = question
        if before is None:
            continue
        _join_question(before, question)
        moves[before.id] = question
    newer.questions = questions


def _join_question(before: QuestionBlock, question: QuestionBlock) -> None:
    question.at, question.turn = before.at, before.turn
    question.after_turn = before.after_turn
    if question.options is None:
        question.title, question.tool_id = before.title, before.tool_id
        question.options, question.takes_text = before.options, before.takes_text
        question.secret, question.command = before.secret, before.command
    if question.outcome is None:
        question.outcome, question.chosen = before.outcome, before.chosen
        question.text = before.text


def _join_speech(older: Fold, newer: Fold, moves: _Moves) -> None:
    before, speech = older.open, newer.head
    if before is None or speech is None:
        return
    if type(before) is not type(speech) or before.message_id != speech.message_id:
        return
    speech.flow.put_before(before.flow)
    speech.at, speech.turn = before.at, before.turn
    moves[before.id] = speech
    if older.head is before:
        older.head = speech


def _place(older: Fold, newer: Fold, moves: _Moves, removed: list[int]) -> None:
    dropped = {block.id for block in moves.values()} | set(removed)
    placed = [moves.get(block.id, block) for block in older.blocks]
    newer.blocks = placed + [block for block in newer.blocks if block.id not in dropped]


def _join_ends(older: Fold, newer: Fold) -> None:
    if older.turn is not older.head_turn:
        newer_head: Turn = older.head_turn
    else:
        newer_head = newer.head_turn
    if newer.head_open:
        newer.open = older.open
    newer.head = _head(older, newer)
    newer.head_open = older.head_open and newer.head_open
    newer.head_turn = newer_head


def _head(older: Fold, newer: Fold) -> SpeechBlock | None:
    return newer.head if older.head_open else older.head


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
