"""A recorded chat with codex (`tests.real_agents.codex.record`) as people read it."""

from pathlib import Path
from typing import Any

import pytest

from quarterdeck.service.chats.history import TurnFold
from quarterdeck.transcript.blocks import (
    DiffPart,
    MessageBlock,
    NoteBlock,
    QuestionBlock,
    ResultBlock,
    ThoughtBlock,
    ToolBlock,
)
from quarterdeck.transcript.export import plain_lines
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent

RECORDED = Path(__file__).parent / "recorded" / "codex.jsonl"


@pytest.fixture(scope="module")
def events() -> list[AgentEvent]:
    return [AgentEvent.model_validate_json(line) for line in RECORDED.read_text().splitlines()]


@pytest.fixture(scope="module")
def transcript(events: list[AgentEvent]) -> Transcript:
    return Transcript(events)


def blocks(transcript: Transcript, kind: type[Any]) -> list[Any]:
    return [block for block in transcript.blocks if isinstance(block, kind)]


def test_every_event_is_understood(transcript: Transcript) -> None:
    assert not blocks(transcript, NoteBlock)


def test_what_codex_said(transcript: Transcript) -> None:
    assert [block.text for block in blocks(transcript, MessageBlock)] == [
        "The shop is **closed**.",
        "Opened.",
        "Touched.",
        "Not touched.",
        "- Walk\n- Run\n",
        "Noted.",
        "That failed.",
        "I wait.",
    ]
    assert blocks(transcript, ThoughtBlock)[-1].text == "I look first."


def test_what_codex_did(transcript: Transcript) -> None:
    tools = {block.title: block for block in blocks(transcript, ToolBlock)}
    assert {title: (str(block.state), block.exit_code) for title, block in tools.items()} == {
        "cat shop.txt; ls": ("completed", 0),
        "Edit /workspace/shop.txt": ("completed", None),
        "touch approved": ("completed", 0),
        "touch refused": ("failed", None),
        "notes: add": ("completed", None),
        "echo no >&2; exit 3": ("failed", 3),
        "sleep 1000": ("failed", tools["sleep 1000"].exit_code),
    }
    assert "closed" in "\n".join(plain_lines(tools["cat shop.txt; ls"]))
    assert tools["Edit /workspace/shop.txt"].parts == (
        DiffPart("/workspace/shop.txt", "closed\n", "open\n"),
    )


def test_what_codex_asked(transcript: Transcript) -> None:
    chosen = [(block.options, block.chosen) for block in blocks(transcript, QuestionBlock)]
    assert [answer for _, answer in chosen] == ["accept", "decline", "0"]
    assert [option.name for option in chosen[2][0]] == ["Left", "Right"]


def test_how_turns_ended(transcript: Transcript) -> None:
    ends = blocks(transcript, ResultBlock)
    failed, stopped = (block for block in ends if not block.is_plain)
    assert "429 Too Many Requests" in failed.error and stopped.reason == "cancelled"


def test_the_same_chat_as_native_turns(events: list[AgentEvent]) -> None:
    turns: list[dict[str, Any]] = []
    fold = TurnFold()
    for event in events:
        fold.add(event.model_dump(mode="json"))
        if event.type == "turn-result":
            turns.append(fold.turn())
            fold = TurnFold()
    assert [turn["status"] for turn in turns] == [
        *["completed"] * 7,
        "failed",
        "interrupted",
    ]
    kinds = [[item["type"] for item in turn["items"]] for turn in turns]
    assert kinds[0] == [
        "userMessage",
        "reasoning",
        "reasoning",
        "commandExecution",
        "agentMessage",
    ]
    assert kinds[1] == ["userMessage", "fileChange", "agentMessage"]
    assert kinds[4] == ["userMessage", "plan"]
    assert kinds[5] == ["userMessage", "mcpToolCall", "agentMessage"]
    command = turns[0]["items"][3]
    assert command["aggregatedOutput"] == "closed\nshop.txt\n" and command["exitCode"] == 0
