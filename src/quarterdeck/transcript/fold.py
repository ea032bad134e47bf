"""The fold: agent events of one chat become blocks.

Two folded stretches of events are joined as if they had been folded in one go. A block that started on
the older stretch and continues in the newer one keeps the newer one's id (so that what the reader
opened stays open), at the older one's place.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count
from typing import NamedTuple

from quarterdeck.transcript import acp
from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    EchoBlock,
    NoteBlock,
    Part,
    PlanBlock,
    QuestionBlock,
    ResultBlock,
    SpeechBlock,
    ToolBlock,
    Turn,
    UserBlock,
)
from quarterdeck.transcript.steps import (
    NoteAdded,
    OwnTurnBegan,
    PlanUpdate,
    PromptSent,
    QuestionAsked,
    QuestionResolved,
    Step,
    TextChunk,
    ToolCallUpdate,
    TurnEnded,
)
from quarterdeck.transcript.text import Flow, one_line
from quarterdeck.wire.history import AgentEvent

FINISHED = frozenset({"completed", "failed"})
OWN_TURN = "The agent continued by itself."


class Fold:
    """Blocks of a stretch, and the state needed to continue at both of its ends.

    `open` is the message that the next piece may continue; `head` the one whose start may be on an
    older page, and `head_open` is True until the first block. `head_turn` is the turn that the
    stretch starts in, `turn` the one that it ends in.
    """

    def __init__(self, ids: Iterator[int]) -> None:
        self.ids = ids
        self.blocks: list[Block] = []
        self.tools: dict[str, ToolBlock] = {}
        self.questions: dict[str, QuestionBlock] = {}
        self.head_turn = Turn()
        self.turn = self.head_turn
        self.open: SpeechBlock | None = None
        self.head: SpeechBlock | None = None
        self.head_open = True

    def apply(self, steps: Sequence[Step], at: datetime) -> list[int]:
        """Fold the steps of one event; return the ids of blocks that were changed or added."""
        touched: list[int] = []
        for step in steps:
            self._apply(step, at, touched)
        return touched

    def _apply(self, step: Step, at: datetime, touched: list[int]) -> None:
        match step:
            case TextChunk():
                self._add_text(step, at, touched)
            case ToolCallUpdate():
                self._update_tool(step, at, touched)
            case PlanUpdate():
                self._update_plan(step, at, touched)
            case PromptSent():
                self._add_prompt(step, at, touched)
            case OwnTurnBegan():
                self._begin_turn(step.message_id, at, touched)
                self._add_note(OWN_TURN, at)
            case QuestionAsked():
                self._open_question(step, at, touched)
            case QuestionResolved():
                self._resolve_question(step, at, touched)
            case TurnEnded():
                self._end_turn(step, at, touched)
            case NoteAdded():
                self._add_note(step.text, at)

    def _add_note(self, text: str, at: datetime) -> None:
        self.blocks.append(NoteBlock(id=next(self.ids), turn=self.turn, at=at, text=text))

    def _begin_turn(self, message_id: str, at: datetime, touched: list[int]) -> None:
        self._break()
        self._close(at, touched)
        self.turn = Turn(message_id=message_id, started_at=at)

    def _break(self) -> None:
        self.open = None
        self.head_open = False

    def _add_text(self, step: TextChunk, at: datetime, touched: list[int]) -> None:
        speech = self.open
        if speech and type(speech) is step.speaker and speech.message_id == step.message_id:
            speech.flow.add(step.text)
            speech.revision += 1
            touched.append(speech.id)
            return
        speech = step.speaker(
            id=next(self.ids),
            turn=self.turn,
            at=at,
            flow=Flow(step.text),
            message_id=step.message_id,
        )
        if self.head_open:
            self.head = speech
        self._break()
        self.open = speech
        if not (isinstance(speech, EchoBlock) and self.turn.message_id is not None):
            self.blocks.append(speech)

    def _update_tool(self, step: ToolCallUpdate, at: datetime, touched: list[int]) -> None:
        if step.opens:
            self._break()
        tool = self.tools.get(step.tool_id)
        if tool is None:
            tool = ToolBlock(id=next(self.ids), turn=self.turn, at=at, tool_id=step.tool_id)
            self.tools[step.tool_id] = tool
            self.blocks.append(tool)
        overlay(tool, step)
        if step.status in FINISHED and tool.ended_at is None:
            tool.ended_at = at
        if tool.status in FINISHED:
            tool.turn.running.pop(tool.tool_id, None)
        else:
            tool.turn.running[tool.tool_id] = tool
        tool.revision += 1
        touched.append(tool.id)

    def _update_plan(self, step: PlanUpdate, at: datetime, touched: list[int]) -> None:
        self._break()
        plan = self.turn.plan
        if plan is None:
            plan = PlanBlock(id=next(self.ids), turn=self.turn, at=at, entries=step.entries)
            self.turn.plan = plan
            self.blocks.append(plan)
            return
        plan.entries = step.entries
        plan.revision += 1
        touched.append(plan.id)

    def _add_prompt(self, step: PromptSent, at: datetime, touched: list[int]) -> None:
        if step.steered:
            self._break()
        else:  # a prompt without an id still marks its turn as one whose message is known
            self._begin_turn(step.message_id or "", at, touched)
        self.blocks.append(
            UserBlock(
                id=next(self.ids),
                turn=self.turn,
                at=at,
                text=step.text,
                message_id=step.message_id,
                images=step.images,
                uploads=step.uploads,
                plan_mode=step.plan_mode,
                goal_mode=step.goal_mode,
                steered=step.steered,
            )
        )

    def _open_question(self, step: QuestionAsked, at: datetime, touched: list[int]) -> None:
        self._break()
        question = self._question(step.request_id, at)
        question.title = step.title
        question.tool_id = step.tool_id
        question.options = step.options
        question.takes_text = step.takes_text
        question.secret = step.secret
        question.command = step.command
        question.patterns = step.patterns
        question.revision += 1
        touched.append(question.id)

    def _resolve_question(self, step: QuestionResolved, at: datetime, touched: list[int]) -> None:
        question = self._question(step.request_id, at)
        question.outcome = step.outcome
        question.chosen = step.chosen
        question.text = step.text
        question.revision += 1
        touched.append(question.id)

    def _question(self, request_id: str, at: datetime) -> QuestionBlock:
        question = self.questions.get(request_id)
        if question is None:
            question = QuestionBlock(
                id=next(self.ids),
                turn=self.turn,
                at=at,
                request_id=request_id,
                after_turn=self.turn.ended_at is not None,
            )
            self.questions[request_id] = question
            self.blocks.append(question)
        return question

    def _end_turn(self, step: TurnEnded, at: datetime, touched: list[int]) -> None:
        self._break()
        self.turn.stop_reason = step.reason
        self.turn.ended_at = None
        self._close(at, touched)
        self.blocks.append(
            ResultBlock(
                id=next(self.ids),
                turn=self.turn,
                at=at,
                reason=step.reason,
                error=step.error,
                model=step.model,
                seconds=step.seconds,
                tokens=step.tokens,
                cost=step.cost,
            )
        )

    def _close(self, at: datetime, touched: list[int]) -> None:
        """Mark the turn as ended: none of its tools runs and none of its questions is open."""
        if self.turn.ended_at is not None:
            return
        self.turn.ended_at = at
        for tool in self.turn.running.values():
            tool.revision += 1
            touched.append(tool.id)
        self.turn.running.clear()
        for question in reversed(self.questions.values()):
            if question.turn is not self.turn:
                break
            question.revision += 1
            touched.append(question.id)


_UPDATED = (
    "title",
    "kind",
    "status",
    "parts",
    "locations",
    "command",
    "raw_input",
    "output",
    "exit_code",
)


def overlay(tool: ToolBlock, newer: ToolCallUpdate | ToolBlock) -> None:
    """Replace the call's values by those that the newer one has set.

    Changes of files stay when only text follows them: a refusal, or a report of the edit.
    """
    changes = _changes(tool.parts)
    for name in _UPDATED:
        value = getattr(newer, name)
        if value is not None:
            setattr(tool, name, value)
    if tool.parts is newer.parts and not _changes(tool.parts):
        tool.parts = (*changes, *(tool.parts or ())) or tool.parts


def _changes(parts: Sequence[Part] | None) -> list[DiffPart]:
    return [part for part in parts or () if isinstance(part, DiffPart)]


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


class BlockChanges(NamedTuple):
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
