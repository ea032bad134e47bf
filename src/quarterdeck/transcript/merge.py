"""Join two folded stretches of events as if they had been folded in one go.

A block that started on the older stretch and continues in the newer one keeps the newer one's id (so
that what the reader opened stays open), at the older one's place.
"""

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
