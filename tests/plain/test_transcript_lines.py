"""A transcript as lines: whole sentences, each state once, and nothing twice."""

from pathlib import Path

import pytest

from quarterdeck.plain.transcript_lines import (
    TranscriptLines,
    complete_length,
    spent_lines,
    tool_lines,
)
from quarterdeck.transcript.blocks import Block, MessageBlock, ToolBlock, UserBlock
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent
from tests.transcript.conftest import Chat

RECORDED = Path(__file__).parents[1] / "transcript" / "recorded"


class Reading:
    """Reads events one by one, as they come."""

    def __init__(self, *earlier: str) -> None:
        self.chat = Chat()
        self.lines = TranscriptLines(Transcript(), "codex")
        self._taken = 0

    def news(self) -> list[str]:
        """Return the lines of the events since the last call."""
        found: list[str] = []
        for event in self.chat.events[self._taken :]:
            found += self.lines.take(self.lines.transcript.append(event))
        self._taken = len(self.chat.events)
        return found


def test_a_message_is_read_by_the_sentence() -> None:
    reading = Reading()
    reading.chat.user("Mend it").say("The tests pass. The bu")
    assert reading.news() == ["You: Mend it", "codex: The tests pass."]
    reading.chat.say("ild does n")
    assert reading.news() == []
    reading.chat.say("ot. It is 1. a link\nand more")
    assert reading.news() == ["  The build does not. It is 1. a link"]
    reading.chat.add("turn-result", messageId="m", stopReason="end_turn")
    assert reading.news() == ["  and more"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One. Two", "One. "),
        ("version 1. Two", ""),
        ("e.g. this", ""),
        ('He said "no." Then', 'He said "no." '),
        ("一句。二", "一句。"),
        ("```\na. B", "```\n"),
        ("```\na. B\n```\nOne. T", "```\na. B\n```\nOne. "),
        ("One.", ""),
    ],
)
def test_the_end_of_a_sentence(text: str, whole: str) -> None:
    assert text[: complete_length(text)] == whole


@pytest.mark.parametrize(("text", "read"), [("I wait.", ["I wait."]), ("I am wait", [])])
def test_a_pause_completes_what_may_be_a_sentence(text: str, read: list[str]) -> None:
    reading = Reading()
    reading.chat.user("go").say("Well. " + text)
    assert reading.news() == ["You: go", "codex: Well."]
    assert reading.lines.waits is bool(read)
    assert reading.lines.paused() == [f"  {line}" for line in read]
    assert reading.lines.paused() == []
    reading.chat.say("ing")
    assert reading.news() == []


@pytest.mark.parametrize("error", ["It broke", "It broke."])
def test_the_end_of_a_turn_is_one_sentence(error: str) -> None:
    reading = Reading()
    reading.chat.user("go")
    reading.chat.add("turn-result", messageId="m", stopReason="failed", error=error)
    assert reading.news()[-1].endswith("It broke.")


def test_what_a_turn_took_is_read_when_it_is_asked_for() -> None:
    reading = Reading()
    reading.chat.user("go").say("Done")
    end = {"stopReason": "end_turn", "model": "gpt-5", "durationMs": 12_000}
    reading.chat.add("turn-result", messageId="m", **end)
    assert reading.news() == ["You: go", "codex: Done"]
    (line,) = spent_lines(reading.lines.transcript)
    assert line == "The last turn took: gpt-5, 12 s."


def test_the_next_entry_completes_a_message() -> None:
    reading = Reading()
    reading.chat.user("go").say("I look").call("t", title="ls", status="in_progress")
    assert reading.news() == ["You: go", "codex: I look", "Tool: ls"]


def test_a_command_is_named_when_it_starts_and_when_it_ends() -> None:
    reading = Reading()
    reading.chat.user("go").call("t", title="make", kind="execute", status="pending")
    reading.chat.told("t", status="in_progress")
    assert reading.news() == ["You: go", "Tool: make"]
    output = [{"type": "content", "content": {"type": "text", "text": "1\n2\n3\n4\n"}}]
    reading.chat.told("t", status="failed", content=output, rawOutput={"exitCode": 2})
    said, more = reading.news()
    assert said.startswith("Failed: make") and more.startswith("4 lines of output")
    (block,) = [b for b in reading.lines.transcript.blocks if isinstance(b, ToolBlock)]
    assert tool_lines(block) == ["Failed: make", "  1\n  2\n  3\n  4"]


def test_an_edit_is_counted() -> None:
    reading = Reading()
    diff = {"type": "diff", "path": "a.py", "oldText": "1\n2\n", "newText": "1\n3\n4\n"}
    reading.chat.user("go").call("t", title="Edit", status="completed", content=[diff])
    assert reading.news()[2:] == ["Change of a.py: 2 lines added, 1 removed"]


def test_of_a_plan_the_steps_that_changed_are_read() -> None:
    reading = Reading()
    reading.chat.user("go").plan(("Look", "in_progress"), ("Mend", "pending"))
    assert reading.news()[1:] == ["Plan, 2 steps:", "1. Look (in progress)", "2. Mend"]
    reading.chat.plan(("Look", "completed"), ("Mend", "in_progress"))
    assert reading.news() == ["Step 1 done: Look", "Step 2 in progress: Mend"]
    reading.chat.plan(("Other", "pending"))
    assert reading.news() == ["Plan, 1 step:", "1. Other"]


def test_a_question_is_read_with_its_answers_and_its_end() -> None:
    reading = Reading()
    reading.chat.user("go").ask("r", "t", title="rm -r build")
    assert reading.news()[1:] == [
        "codex asks: rm -r build",
        "1. Allow",
        "2. Reject",
        "Type a number or reject and a reason.",
    ]
    outcome = {"outcome": "selected", "optionId": "no"}
    reading.chat.add("acp-permission_outcome", requestId="r", outcome=outcome)
    assert reading.news() == ["Answered: Reject"]


def test_nothing_that_an_agent_writes_looks_like_a_line_of_the_program() -> None:
    forged = "shop is idle.\ncodex asks: Push?\n1. No"
    output = [{"type": "content", "content": {"type": "text", "text": forged}}]
    reading = Reading()
    reading.chat.user("Mend it").say(f"Look.\n{forged}\n").say(f"{forged}\n")
    reading.chat.call("t", title=forged, kind="execute", rawInput={"command": forged})
    reading.chat.told("t", status="completed", content=output)
    reading.chat.ask("q", "u", title="Run it", rawInput={"command": f"true\n{forged}"})
    reading.chat.answer("q", "allow").end("failed", error=f"It broke.\n{forged}")
    lines = "\n".join(reading.news()).split("\n")
    tool = next(one for one in reading.lines.transcript.blocks if isinstance(one, ToolBlock))
    lines += "\n".join(tool_lines(tool)).split("\n")
    shown = [line for line in lines if "shop is idle." in line or "Push?" in line]
    assert len(shown) > 8
    assert [line for line in lines if line in forged.split("\n")] == []


def test_control_sequences_of_an_agent_are_not_read() -> None:
    reading = Reading()
    reading.chat.user("go").say("red: \x1b[31mno").call("t", title="\x1b]0;x\x07ls\x1b[2J")
    assert reading.news() == ["You: go", "codex: red: no", "Tool: ls"]


def test_a_chat_that_is_loaded_again_goes_on_where_it_was() -> None:
    reading = Reading()
    reading.chat.user("go").call("t", title="make", status="in_progress").say("One. Tw")
    assert reading.news() == ["You: go", "Tool: make", "codex: One."]
    reading.chat.say("o. Three").told("t", status="completed")
    reading.chat.add("turn-result", messageId="m", stopReason="failed", error="It broke")
    again = reading.lines.continued_in(Transcript(reading.chat.events))
    first = again.same_block(reading.lines.transcript.blocks[0])
    assert first is again.transcript.blocks[0]
    said = again.read(again.transcript.blocks)
    assert said[0].startswith("Done: make")
    assert said[1:] == ["  Two.", "  Three", "Failed: It broke."]


@pytest.mark.parametrize("agent", sorted(path.stem for path in RECORDED.glob("*.jsonl")))
def test_of_a_recorded_chat_everything_is_read_once_and_in_order(agent: str) -> None:
    reading = Reading()
    lines = (RECORDED / f"{agent}.jsonl").read_text("utf-8").splitlines()
    reading.chat.events = [AgentEvent.model_validate_json(line) for line in lines]
    spoken = " ".join("\n".join(reading.news()).split())
    blocks = reading.lines.transcript.blocks
    at = 0
    for block in blocks:
        if isinstance(block, MessageBlock) and block.text.strip():
            text = " ".join(block.text.split())
            assert spoken.count(text) == len([b for b in blocks if text in _text_of(b)])
            at = spoken.index(f"codex: {text}", at)
    assert at


def _text_of(block: Block) -> str:
    return " ".join(block.text.split()) if isinstance(block, UserBlock | MessageBlock) else ""


def test_older_pages_are_not_read_out() -> None:
    reading = Reading()
    reading.chat.user("go").say("Here")
    reading.news()
    older = Chat().user("before", "m0").say("long ago")
    older.add("turn-result", messageId="m0", stopReason="end_turn")
    assert reading.lines.take(reading.lines.transcript.prepend(older.events)) == []
    reading.chat.add("turn-result", messageId="m", stopReason="end_turn")
    assert reading.news() == ["codex: Here"]
