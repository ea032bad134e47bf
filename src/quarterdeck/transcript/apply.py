"""Applies steps to blocks: the state of a fold over one unbroken stretch of events."""

from collections.abc import Iterator, Sequence
from datetime import datetime

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
from quarterdeck.transcript.text import Flow

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
