"""Recorded chats with agents (`tests.real_agents.acp.record`) as people read them."""

from pathlib import Path
from typing import Any

import pytest

from quarterdeck.transcript.blocks import (
    MessageBlock,
    NoteBlock,
    PlanBlock,
    QuestionBlock,
    ResultBlock,
    ThoughtBlock,
    ToolBlock,
    ToolState,
    UserBlock,
)
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent

RECORDED = Path(__file__).parent / "recorded"
AGENTS = ("opencode", "claude", "copilot", "gemini")


@pytest.fixture(scope="module", params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def events(agent: str) -> list[AgentEvent]:
    text = (RECORDED / f"{agent}.jsonl").read_text()
    return [AgentEvent.model_validate_json(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def transcript(events: list[AgentEvent]) -> Transcript:
    return Transcript(events)


def blocks(transcript: Transcript, kind: type[Any]) -> list[Any]:
    return [block for block in transcript.blocks if isinstance(block, kind)]


def test_every_event_is_understood(transcript: Transcript) -> None:
    assert not blocks(transcript, NoteBlock)
    assert len(blocks(transcript, UserBlock)) == 9


def test_thoughts_and_words(transcript: Transcript) -> None:
    (thought,) = blocks(transcript, ThoughtBlock)
    assert thought.text.endswith("I look first.")
    said = "\n".join(block.text for block in blocks(transcript, MessageBlock))
    for words in ("The shop is **closed**.", "Now it is gone.", "Noted.", "That failed."):
        assert words in said


def test_tools_and_what_came_of_them(transcript: Transcript) -> None:
    tools = blocks(transcript, ToolBlock)
    looked, refused, removed = tools[:3]
    assert looked.state is ToolState.COMPLETED
    assert "closed" in repr(looked.shown_parts) and "shop.txt" in repr(looked.shown_parts)
    assert refused.state is not ToolState.COMPLETED
    assert removed.state is ToolState.COMPLETED
    assert any("noted: remember" in repr(tool.shown_parts) for tool in tools)
    assert all(tool.state is not ToolState.IN_PROGRESS for tool in tools)


def test_questions_and_their_answers(transcript: Transcript) -> None:
    questions = blocks(transcript, QuestionBlock)
    assert {question.outcome for question in questions} == {"selected"}
    kinds = [
        next(o.kind for o in question.options if o.id == question.chosen) for question in questions
    ]
    assert "reject_once" in kinds and "allow_once" in kinds
    assert not transcript.open_questions


def test_how_turns_ended(transcript: Transcript) -> None:
    ends = blocks(transcript, ResultBlock)
    failed, stopped = (block for block in ends if not block.is_plain)
    assert failed.reason == "failed" and "reported an error" in failed.error
    assert stopped.reason == "cancelled"


def test_a_plan_that_was_told(transcript: Transcript, agent: str) -> None:
    plans = blocks(transcript, PlanBlock)
    told = [[entry.text for entry in plan.entries] for plan in plans]
    assert told == ([["Walk", "Run"]] if agent == "opencode" else [])


def test_events_page_by_page_give_the_same(events: list[AgentEvent]) -> None:
    whole = Transcript(events)
    paged = Transcript(events[40:])
    paged.prepend(events[:40])
    assert [type(one) for one in paged.blocks] == [type(one) for one in whole.blocks]


def test_what_would_be_run_is_in_the_question(transcript: Transcript, agent: str) -> None:
    questions = blocks(transcript, QuestionBlock)
    beneath = [question.command for question in questions if question.command]
    removals = sum("rm shop.txt" in (question.title or "") for question in questions)
    if agent == "copilot":  # its titles are its model's words on the command
        assert not removals and "rm shop.txt" in beneath
    else:
        assert removals and not beneath
