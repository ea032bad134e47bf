"""Events become blocks."""

from typing import Any

import pytest

from quarterdeck.transcript.blocks import (
    DiffPart,
    MessageBlock,
    NoteBlock,
    PlanBlock,
    PlanState,
    QuestionBlock,
    ResultBlock,
    TerminalPart,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    ToolState,
    UserBlock,
)
from quarterdeck.transcript.export import markdown_of, plain_lines
from quarterdeck.transcript.fold import BlockChanges, Transcript


def only(transcript: Transcript, kind: type[Any]) -> Any:
    found = [block for block in transcript.blocks if isinstance(block, kind)]
    assert len(found) == 1, found
    return found[0]


def test_a_turn(chat: Any) -> None:
    chat.user("do it").think("hm").say("I ").say("will.").call("t", title="Run").end()
    transcript = Transcript(chat.events)
    kinds = [type(block) for block in transcript.blocks]
    assert kinds == [UserBlock, ThoughtBlock, MessageBlock, ToolBlock, ResultBlock]
    assert only(transcript, MessageBlock).text == "I will."


def test_changes_name_blocks(chat: Any) -> None:
    transcript = Transcript()
    chat.user("x").say("a").say("b").update("usage_update", used=1, size=2)
    first, second, third, silent = (transcript.append(event) for event in chat.events)
    assert first == BlockChanges(added=(transcript.blocks[0].id,))
    assert second == BlockChanges(added=(transcript.blocks[1].id,))
    assert third == BlockChanges(changed=(transcript.blocks[1].id,))
    assert not silent


def test_a_tool_call_is_upserted(chat: Any) -> None:
    chat.call("t", title="pytest -q", kind="execute", rawInput={"command": ["pytest", "-q"]})
    chat.told("t", status="in_progress").say("...")
    text = {"type": "content", "content": {"type": "text", "text": "1 \x1b[31mfailed"}}
    diff = {"type": "diff", "path": "a.py", "oldText": "a", "newText": "b"}
    chat.told("t", status="failed", content=[text, diff], rawOutput={"exit_code": 1})
    chat.told("t", locations=[{"path": "a.py", "line": 3}])
    tool = only(Transcript(chat.events), ToolBlock)
    assert (tool.state, tool.exit_code, tool.command) == (ToolState.FAILED, 1, "pytest -q")
    assert tool.parts == (TextPart("1 failed"), DiffPart("a.py", "a", "b"))
    assert tool.duration == 3.0
    assert tool.locations[0].line == 3


def test_raw_output_stands_in_for_missing_content(chat: Any) -> None:
    chat.call("t", title="ls", status="completed", rawOutput={"stdout": "a\n", "stderr": "e"})
    tool = only(Transcript(chat.events), ToolBlock)
    assert tool.shown_parts == (TextPart("a\n\ne"),)


def test_raw_output_stands_in_for_that_of_a_terminal(chat: Any) -> None:
    chat.call("t", title="ls", content=[{"type": "terminal", "terminalId": "t"}])
    transcript = Transcript(chat.events)
    assert only(transcript, ToolBlock).shown_parts == (TerminalPart("t"),)
    chat.told("t", status="completed", rawOutput={"aggregated_output": "a\n"})
    transcript.append(chat.events[-1])
    assert only(transcript, ToolBlock).shown_parts == (TextPart("a\n"),)


def test_a_tool_call_does_not_outlive_its_turn(chat: Any) -> None:
    chat.user("x").call("t", title="sleep", status="in_progress")
    transcript = Transcript(chat.events)
    tool = only(transcript, ToolBlock)
    assert tool.state is ToolState.IN_PROGRESS
    change = transcript.append(type(chat)().end("cancelled").events[0])
    assert tool.state is ToolState.STOPPED and tool.id in change.changed
    assert only(transcript, ResultBlock).reason == "cancelled"


def test_the_change_of_a_rejected_edit_stays(chat: Any) -> None:
    diff = {"type": "diff", "path": "a.py", "oldText": "a", "newText": "b"}
    refusal = {"type": "content", "content": {"type": "text", "text": "Rejected by the user"}}
    chat.user("x").ask("q", "t", title="Edit a.py", content=[diff]).answer("q", "no")
    chat.told("t", status="failed", content=[refusal])
    expected = (DiffPart("a.py", "a", "b"), TextPart("Rejected by the user"))
    assert only(Transcript(chat.events), ToolBlock).parts == expected
    paged = Transcript(chat.events[3:])
    paged.prepend(chat.events[:3])
    assert only(paged, ToolBlock).parts == expected


def test_a_newer_change_replaces_the_older(chat: Any) -> None:
    for new in ("b", "c"):
        diff = {"type": "diff", "path": "a.py", "oldText": "a", "newText": new}
        chat.told("t", content=[diff])
    assert only(Transcript(chat.events), ToolBlock).parts == (DiffPart("a.py", "a", "c"),)


def test_the_exit_code_of_a_command_in_the_agents_terminal(chat: Any) -> None:
    ended = {"terminal_exit": {"terminal_id": "t", "exit_code": 3, "signal": None}}
    chat.call("t", title="make").told("t", status="failed", _meta=ended)
    assert only(Transcript(chat.events), ToolBlock).exit_code == 3


def test_what_a_turn_took(chat: Any) -> None:
    chat.user("x").add(
        "turn-result",
        messageId="m",
        stopReason="end_turn",
        usage={"totalTokens": 4102},
        model="gpt-5",
        durationMs=12_400,
        cost={"amount": 0.031, "currency": "USD"},
    )
    end = only(Transcript(chat.events), ResultBlock)
    assert end.is_plain
    assert plain_lines(end) == ["gpt-5 \u00b7 12 s \u00b7 4,102 tokens \u00b7 $0.03"]


def test_a_turn_of_which_nothing_is_known_ends_without_words(chat: Any) -> None:
    assert plain_lines(only(Transcript(chat.user("x").end().events), ResultBlock)) == []


def test_a_plan_is_replaced_within_its_turn(chat: Any) -> None:
    chat.user("x").plan(("a", "pending")).plan(("a", "completed"), ("b", "odd")).end()
    chat.user("y").plan(("c", "pending"))
    plans = [b for b in Transcript(chat.events).blocks if isinstance(b, PlanBlock)]
    assert [[(e.text, e.state) for e in plan.entries] for plan in plans] == [
        [("a", PlanState.COMPLETED), ("b", PlanState.PENDING)],
        [("c", PlanState.PENDING)],
    ]


def test_a_question_opens_and_settles(chat: Any) -> None:
    chat.user("x").ask("q", "t", title="Write /etc/x")
    transcript = Transcript(chat.events)
    question = only(transcript, QuestionBlock)
    assert transcript.open_questions == [question] and question.is_open
    assert question.title == "Write /etc/x"
    assert transcript.tool("t") is not None
    transcript.append(type(chat)().answer("q", "yes").events[0])
    assert not question.is_open and question.chosen_name == "Allow"
    assert transcript.open_questions == []


def test_the_end_of_a_turn_closes_its_questions(chat: Any) -> None:
    chat.user("x").ask("q", "t").end("cancelled")
    assert not only(Transcript(chat.events), QuestionBlock).is_open


def test_a_question_after_a_turn_stays_open_until_it_is_answered(chat: Any) -> None:
    chat.user("x").end("end_turn").ask("q", "t").user("y").end("end_turn")
    assert only(Transcript(chat.events), QuestionBlock).is_open
    assert not only(Transcript(chat.answer("q", "yes").events), QuestionBlock).is_open


def test_a_turn_that_the_agent_began_is_a_turn_of_its_own(chat: Any) -> None:
    chat.user("do it").call("t", title="Run", status="in_progress").end()
    chat.add("turn-started", messageId="own", origin="agent").say("more").ask("q", "u")
    transcript = Transcript(chat.events)
    assert only(transcript, NoteBlock).text == "The agent continued by itself."
    assert only(transcript, MessageBlock).turn is transcript.turn
    assert transcript.turn.message_id == "own"
    assert [one.request_id for one in transcript.open_questions] == ["q"]
    chat.end()
    assert transcript.append(chat.events[-1]) and not transcript.open_questions


def test_a_notice_is_a_note_of_its_turn(chat: Any) -> None:
    chat.user("do it").say("hm").add("notice", text="No sign of\n life").say("on")
    transcript = Transcript(chat.events)
    note = only(transcript, NoteBlock)
    assert (plain_lines(note), note.turn) == (["(No sign of life)"], transcript.turn)


def test_unknown_events_are_kept_as_notes(chat: Any) -> None:
    chat.add("claude-thing", a=1).update("from_the_future", x=1).add("acp-session_update")
    chat.update("tool_call", title=5).update("plan", entries="no").add("user-message", text=1)
    blocks = Transcript(chat.events).blocks
    assert all(isinstance(block, NoteBlock) for block in blocks) and len(blocks) == 6
    assert plain_lines(blocks[1]) == ["(acp-session_update: from_the_future)"]


def test_an_operation_with_git_is_one_line_and_cuts_no_message_in_two(chat: Any) -> None:
    chat.user("x").say("Half a ", "m").add(
        "git-operation", operation="push", text="Pushed\nmain\x1b[2J"
    )
    chat.say("sentence", "m").add("git-operation", text="no operation")
    blocks = Transcript(chat.events).blocks
    assert [plain_lines(block) for block in blocks] == [
        ["> x"],
        ["Half a sentence"],
        ["(Pushed main)"],
        ["(git-operation)"],
    ]


def test_everything_shown_is_cleaned(chat: Any) -> None:
    evil = "\x1b]0;x\x07e\x1b[2Jvil\u202e\x00"
    content = [{"type": "content", "content": {"type": "text", "text": evil}}]
    chat.user(evil, images=[{"type": "image", "source": {"type": "url", "url": evil}}])
    chat.say(evil).think(evil).plan((evil, "pending")).add(evil, type=evil)
    chat.call("t", title=evil, kind=evil, content=content, rawInput={"command": evil, "k": evil})
    chat.told("t", locations=[{"path": evil}], rawOutput={"output": evil})
    chat.add("acp-permission_request", requestId="q", options=[{"optionId": "a", "name": evil}])
    chat.call("u", title="\x1b[1m").end("failed", evil)
    transcript = Transcript(chat.events)
    shown = "".join(line for block in transcript.blocks for line in plain_lines(block))
    tool = transcript.tool("t")
    assert tool is not None
    shown += tool.input_text + (tool.output or "") + repr(tool.locations) + (tool.command or "")
    assert "\x1b" not in shown and "\x00" not in shown and "\u202e" not in shown
    assert "\\x1b" not in shown
    assert shown.count("evil") >= 12


def test_ids_of_answers_are_cleaned_where_they_are_shown(chat: Any) -> None:
    """They are sent back as they are."""
    harm, option = "\x1b]0;x\x07", {"name": "Yes", "kind": "allow_once"}
    asked = {"title": "Go on?", "options": [option | {"optionId": f"{harm}yes"}]}
    outcome = {"outcome": "selected", "optionId": f"{harm}no"}
    chat.add("acp-permission_request", requestId="r1", **asked)
    chat.add("acp-permission_outcome", requestId="r2", outcome=outcome)
    blocks = Transcript(chat.events).blocks
    lines = [line for block in blocks for line in plain_lines(block)]
    assert "  1. Yes (yes)" in lines and "  -> no" in lines
    assert "\x1b" not in markdown_of(blocks)
    assert blocks[0].options[0].id == f"{harm}yes"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_text_of_many_digits_is_no_number(chat: Any) -> None:
    """Divided by a thousand it is an error of arithmetic, with which the cockpit would end."""
    chat.user("Go").add("turn-result", messageId="m", stopReason="end_turn", durationMs="9" * 400)
    transcript = Transcript(chat.events)
    assert plain_lines(transcript.blocks[-1]) == ["(turn-result)"]


def test_plain_lines_hold_no_newlines(chat: Any) -> None:
    chat.user("a\nb").say("c\nd").think("e\nf").call("t", title="g\nh", rawOutput="i\nj")
    for block in Transcript(chat.events).blocks:
        assert all("\n" not in line for line in plain_lines(block))


def test_an_echo_of_the_prompt_is_shown_once(chat: Any) -> None:
    chat.user("hello").echo("hel").echo("lo").say("hi")
    assert [type(b) for b in Transcript(chat.events).blocks] == [UserBlock, MessageBlock]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("rm shop.txt", ["rm shop.txt"]),
        (["rm", "-r", "the shop"], ["rm -r 'the shop'"]),
        ("cd /\nrm -r *\n", ["cd /", "rm -r *"]),
        ("rm \x1b[8mall\x1b[0m \u202eback", ["rm all back"]),
    ],
)
def test_a_question_shows_the_command_that_its_title_keeps_back(
    chat: Any, command: Any, shown: list[str]
) -> None:
    chat.user("go").ask("q", "t", title="Tidies up", rawInput={"command": command})
    (question,) = Transcript(chat.events).open_questions
    first, *rest = shown
    lines = [f"  $ {first}", *(f"    {line}" for line in rest)]
    assert plain_lines(question)[: 1 + len(shown)] == ["? Tidies up", *lines]


@pytest.mark.parametrize("command", ["rm shop.txt", ["rm", "shop.txt"], "", None, 7])
def test_a_command_is_not_shown_twice_nor_where_there_is_none(chat: Any, command: Any) -> None:
    chat.user("go").ask("q", "t", title="`rm shop.txt` wants leave", rawInput={"command": command})
    (question,) = Transcript(chat.events).open_questions
    assert question.command is None
    untitled = chat.ask("r", "u", rawInput={"command": "rm shop.txt"})
    assert plain_lines(Transcript(untitled.events).open_questions[1])[0] == "? rm shop.txt"


def test_a_command_too_long_to_read_shows_both_its_ends(chat: Any) -> None:
    command = "begin " + "x" * 100_000 + "; rm -r /"
    chat.user("go").ask("q", "t", title="Tidies up", rawInput={"command": command})
    (question,) = Transcript(chat.events).open_questions
    assert question.command is not None and len(question.command) < 9_000
    assert question.command.startswith("begin ") and question.command.endswith("; rm -r /")
    assert "92,015 more characters" in question.command


def test_a_steered_message_stands_in_the_running_turn(chat: Any) -> None:
    chat.user("do it", "m1").say("I ").user("faster", "m2", steered=True).say("hurry.").end()
    for split in range(len(chat.events) + 1):
        transcript = Transcript(chat.events[split:])
        transcript.prepend(chat.events[:split])
        blocks = transcript.blocks
        kinds = [UserBlock, MessageBlock, UserBlock, MessageBlock, ResultBlock]
        assert [type(block) for block in blocks] == kinds, split
        assert {id(block.turn) for block in blocks} == {id(transcript.turn)}
        assert transcript.turn.message_id == "m1"
        assert [b.steered for b in blocks if isinstance(b, UserBlock)] == [False, True]
