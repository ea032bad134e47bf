"""The dialog of a question above the composer: when it has the focus, and what its keys do."""

from pathlib import Path
from typing import Any

import pytest
from textual import events

from quarterdeck.client.agents import AgentsApi
from quarterdeck.client.errors import NotConnectedError
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import ChatChange
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.chat_messages import chat_tab
from quarterdeck.tui.widgets import question
from quarterdeck.tui.widgets.question import QuestionDock
from quarterdeck.wire.agents import Agent
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_chat.test_chat_composer import png
from tests.tui_shell.frozen import FrozenCockpit, Story, said, screen_text
from tests.tui_shell.live import Installation

PERMISSION = {
    "yes": ("Allow", "allow_once"),
    "always": ("Always allow `git push`", "allow_always"),
    "no": ("Reject", "reject_once"),
}
LONG = 3_600.0


def ask(story: Story, request_id: str = "r", **more: Any) -> Story:
    options = [
        {"optionId": id, "name": name, "kind": kind} for id, (name, kind) in PERMISSION.items()
    ]
    call = {"toolCallId": f"t-{request_id}", "title": f"git push {request_id}"}
    asked = {"requestId": request_id, "toolCall": call, "options": options, **more}
    return story.add("acp-permission_request", **asked)


def asking(frozen: FrozenCockpit, story: Story) -> ReplicaState:
    state = frozen.add("alpha", processing=True, awaiting_input=True)
    said(state, story.events)
    return state


def show(frozen: FrozenCockpit, state: ReplicaState, story: Story, *, asks: bool = True) -> None:
    """Shows the story as it is now."""
    chat = state.first_chat
    assert chat is not None
    chat.record.awaiting_input = asks
    said(state, story.events)
    frozen.app_state.publish(ChatChange(state.id, chat.id))


def focus(frozen: FrozenCockpit) -> str:
    return type(frozen.focused).__name__


def pane(frozen: FrozenCockpit) -> ChatPane:
    return frozen.screen.query_one(ChatPane)


@pytest.fixture
def sent() -> list[str]:
    """Messages that were sent with answers."""
    return []


@pytest.fixture
def answers(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch, sent: list[str]
) -> list[tuple[str, str]]:
    """Pairs of the request's id and the option's; there is no pause before a letter counts."""
    given: list[tuple[str, str]] = []

    async def respond(
        _: object, __: object, request_id: str, *, option_id: str, message: str | None
    ) -> None:
        given.append((request_id, option_id))
        sent.extend([message] if message else [])

    monkeypatch.setattr(frozen.app_state.commands, "respond", respond)
    monkeypatch.setattr(question, "GRACE_SECONDS", 0.0)
    return given


async def test_letters_answer_wherever_the_reader_is_and_digits_are_tabs(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    story = ask(Story().user("go"))
    for number in range(60):
        story.say(f"\n\nparagraph {number}\n\n")
    asking(frozen, story)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        text = screen_text(frozen)
        assert "paragraph 59" in text and "git push r" in text
        assert "builtin asks for permission" in text and "enter queues until you answer" in text
        assert "y Allow   a Always allow `git push`   n Reject   t Reject and say why" in text
        assert "y allow" in text.splitlines()[-1]
        await pilot.press("question_mark")
        await eventually(lambda: "Always allow" in screen_text(frozen), "the help")
        assert "Always reject" not in screen_text(frozen)  # this question has no such answer
        await pilot.press("escape", "N", "b", "enter")  # neither an answer, nor one is marked
        await pilot.press("2")
        await eventually(lambda: "[2 Terminal]" in screen_text(frozen))
        assert answers == []
        await pilot.press("1", "tab")
        await eventually(lambda: focus(frozen) == "ChatTranscript", "the transcript")
        await pilot.press("y")  # copies here
        assert answers == []
        await pilot.press("alt+q", "n", "n", "y")
        await eventually(lambda: answers == [("r", "no")], "one answer")


@pytest.mark.long
async def test_a_marked_answer_is_given_by_enter_and_any_by_the_mouse(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    asking(frozen, ask(Story().user("go")))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press("up", "up", "enter")
        await eventually(lambda: answers == [("r", "no")], "the marked answer")
        pane(frozen).question.reopen()
        rows = screen_text(frozen).splitlines()
        y = next(n for n, row in enumerate(rows) if "Always" in row)
        await pilot.click(offset=(rows[y].index("Always"), y))
        await eventually(lambda: answers[1:] == [("r", "always")], "the answer that was clicked")


@pytest.mark.long
async def test_it_takes_the_focus_of_an_empty_composer_only(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    story = Story().user("go")
    state = frozen.add("alpha", processing=True)
    said(state, story.events)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "Composer", "the composer")
        await pilot.press(*"yes")
        show(frozen, state, ask(story, "one"))
        await eventually(lambda: "git push one" in screen_text(frozen), "the question")
        await pilot.press("y")
        assert answers == [] and pane(frozen).composer.text == "yesy"
        assert "alt+q to answer" in screen_text(frozen)
        await pilot.press("alt+q", "y")
        await eventually(lambda: answers == [("one", "yes")], "the answer")
        outcome = {"outcome": "selected", "optionId": "yes"}
        story.add("acp-permission_outcome", requestId="one", outcome=outcome)
        show(frozen, state, story, asks=False)
        await eventually(lambda: focus(frozen) == "Composer", "the composer again")
        await pilot.press("ctrl+u")
        frozen.post_message(events.AppBlur())
        await eventually(lambda: not frozen.app_focus, "another window")
        show(frozen, state, ask(story, "two"))
        await eventually(lambda: "git push two" in screen_text(frozen), "the next question")
        frozen.post_message(events.AppFocus())
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press("m")
        await eventually(lambda: focus(frozen) == "Composer", "the composer, asked for")


@pytest.mark.long
async def test_text_that_is_typed_as_the_question_comes_is_text(
    frozen: FrozenCockpit, answers: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "GRACE_SECONDS", LONG)
    asking(frozen, ask(Story().user("go")))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press(*"yes is it")
        await eventually(lambda: pane(frozen).composer.text == "yes is it", "the text")
        assert answers == []
        await pilot.press("alt+q", "y")  # who goes there by a key has seen it
        await eventually(lambda: answers == [("r", "yes")], "the answer")


@pytest.mark.long
async def test_of_several_questions_the_oldest_is_answered_first(
    frozen: FrozenCockpit, answers: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = ask(ask(Story().user("go"), "one"), "two")
    state = asking(frozen, story)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: "permission · 1 of 2" in screen_text(frozen), "the first one")
        await pilot.press("y")
        await eventually(lambda: answers == [("one", "yes")], "the answer")
        monkeypatch.setattr(question, "GRACE_SECONDS", LONG)
        outcome = {"outcome": "selected", "optionId": "yes"}
        story.add("acp-permission_outcome", requestId="one", outcome=outcome)
        show(frozen, state, story)
        await eventually(lambda: "1 of 2" not in screen_text(frozen), "the second one")
        assert focus(frozen) == "QuestionView" and "git push two" in screen_text(frozen)
        await pilot.press("y")  # too soon: meant for the first one
        assert answers == [("one", "yes")]
        monkeypatch.setattr(question, "GRACE_SECONDS", 0.0)
        await pilot.press("y")
        await eventually(lambda: answers[1:] == [("two", "yes")], "the answer")


@pytest.mark.long
async def test_a_rejection_is_sent_with_its_reason(
    frozen: FrozenCockpit, answers: list[tuple[str, str]], sent: list[str]
) -> None:
    asking(frozen, ask(Story().user("go")))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press("t", *"not yet")
        await eventually(lambda: "enter reject and send" in screen_text(frozen), "the field")
        await pilot.press("escape")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question again")
        assert answers == []
        await pilot.press("t", *"!", "enter")
        await eventually(lambda: answers == [("r", "no")], "the rejection")
        assert sent == ["not yet!"]


@pytest.mark.long
@pytest.mark.parametrize("width", [40, 80])
async def test_after_a_reason_the_next_question_has_the_focus(
    frozen: FrozenCockpit, answers: list[tuple[str, str]], sent: list[str], width: int
) -> None:
    story = ask(ask(Story().user("go"), "one"), "two")
    state = asking(frozen, story)
    async with frozen.run_test(size=(width, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the first one")
        await pilot.press("t", *"why", "enter")
        await eventually(lambda: answers == [("one", "no")] and sent, "the rejection")
        outcome = {"outcome": "selected", "optionId": "no"}
        story.add("acp-permission_outcome", requestId="one", outcome=outcome)
        show(frozen, state, story)
        await eventually(lambda: "git push two" in screen_text(frozen), "the second one")
        await pilot.press("y")
        await eventually(lambda: answers[1:] == [("two", "yes")], "the answer")
        assert focus(frozen) == "QuestionView"


@pytest.mark.long
async def test_the_key_for_the_question_works_in_the_list(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    asking(frozen, ask(Story().user("go")))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press("escape")
        await eventually(lambda: focus(frozen) == "ReplicaListView", "the list")
        await pilot.press("alt+q", "y")
        await eventually(lambda: answers == [("r", "yes")], "the answer")


@pytest.mark.long
async def test_a_reason_is_kept_when_the_question_ends_or_the_answer_is_refused(
    frozen: FrozenCockpit,
    answers: list[tuple[str, str]],
    sent: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def respond(*_: object, **__: object) -> None:
        raise NotConnectedError("Cannot reach the service.")

    monkeypatch.setattr(frozen.app_state.commands, "respond", respond)
    story = ask(Story().user("go"))
    state = asking(frozen, story)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await pilot.press("t", *"why", "enter")
        await eventually(lambda: "Cannot reach" in screen_text(frozen), "the refusal")
        assert pane(frozen).question.reason == "why" and sent == []
        story.add("turn-result", messageId="m0", stopReason="cancelled")
        show(frozen, state, story, asks=False)
        await eventually(lambda: pane(frozen).composer.text == "why", "the text in the composer")
        assert focus(frozen) == "Composer"


@pytest.mark.parametrize(
    "size", [(40, 24), (80, 24), (120, 40)], ids=lambda size: "x".join(map(str, size))
)
async def test_a_long_command_is_read_to_its_end(
    frozen: FrozenCockpit, answers: list[tuple[str, str]], size: tuple[int, int]
) -> None:
    command = "\n".join(f"line {n}" for n in range(60))
    call = {"toolCallId": "t", "title": "Tidies up", "rawInput": {"command": command}}
    asking(frozen, ask(Story().user("go"), toolCall=call))
    async with frozen.run_test(size=size) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        await eventually(lambda: "Tidies up" in screen_text(frozen), "its text")
        text = screen_text(frozen)
        assert "builtin wants to run" in text and "$ line 0" in text and "of 61 pagedown" in text
        for answer in ("y Allow", "a Always allow `git push`", "n Reject", "t Reject and say why"):
            assert answer in text
        assert "Message" in text and "> " not in text
        seen: set[str] = set()
        for _ in range(30):
            text = screen_text(frozen)
            seen |= {row for row in command.split("\n") if f"{row} " in text}
            if len(seen) == 60:
                break
            await pilot.press("pagedown")
        assert len(seen) == 60
        await pilot.press("y")
        await eventually(lambda: answers == [("r", "yes")], "the answer")


KINDS = {
    "once": "allow_once",
    "always": "allow_always",
    "for this folder": "allow_always",
    "no": "reject_once",
    "never": "reject_always",
    "later": "postpone",
}


async def test_answers_have_letters_by_what_they_mean(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    options = [{"optionId": name, "name": name, "kind": kind} for name, kind in KINDS.items()]
    asking(frozen, ask(Story().user("go"), options=options))
    async with frozen.run_test(size=(80, 30)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        for word in ("y once", "a always", "b for this folder", "n no", "N never", "c later"):
            assert word in screen_text(frozen)
        for key in ("y", "a", "b", "n", "N", "c", "d"):
            await pilot.press(key)
            pane(frozen).question.reopen()
        await eventually(lambda: [option for _, option in answers] == list(KINDS), "the answers")


async def test_a_choice_has_letters_by_its_place_and_may_take_a_text(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    kinds = {"Left": "allow_once", "Right": "allow_once", "Do not answer": "reject_once"}
    options = [{"optionId": name, "name": name, "kind": kind} for name, kind in kinds.items()]
    asking(frozen, ask(Story().user("go"), options=options, acceptsText=True))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "QuestionView", "the question")
        text = screen_text(frozen)
        assert "a Left   b Right   c Do not answer" in text and "builtin asks" in text
        assert "Or type an answer below." in text and "enter answers the question" in text
        assert "say why" not in text
        await pilot.press("c")
        await eventually(lambda: answers == [("r", "Do not answer")], "the answer")
        await pilot.press("m")
        await eventually(lambda: " enter answer " in screen_text(frozen), "the key line")


async def test_a_question_that_takes_a_text_only_leaves_the_focus_to_the_composer(
    frozen: FrozenCockpit, answers: list[tuple[str, str]]
) -> None:
    asking(frozen, ask(Story().user("go"), options=[], acceptsText=True))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "Composer", "the composer")
        assert "Type an answer below." in screen_text(frozen)
        assert frozen.screen.query_one(QuestionDock).display


async def test_the_pasted_path_of_an_image_can_be_an_answer(
    frozen: FrozenCockpit, tmp_path: Path
) -> None:
    picture = tmp_path / "logo.png"
    picture.write_bytes(png())
    asking(frozen, ask(Story().user("go"), options=[], acceptsText=True))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await eventually(lambda: focus(frozen) == "Composer", "the composer")
        frozen.post_message(events.Paste(str(picture)))
        await eventually(
            lambda: frozen.screen.query_one(ChatPane).composer.text == str(picture), "the path"
        )


async def test_an_agent_is_called_as_the_configuration_file_calls_it(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Agent(id="builtin", name="The Robot", available=True, configured=True)
    other = Agent(id="codex", name="Codex", available=False)

    async def agents(_: object) -> list[Agent]:
        return [robot, other]

    monkeypatch.setattr(AgentsApi, "list", agents)
    monkeypatch.setattr("quarterdeck.store.app_state.RELEASED", frozenset({"codex"}))
    await live.create("alpha")
    async with live.cockpit() as desk:
        shown = await opened(desk, "alpha")
        app_state = desk.app.app_state
        await eventually(lambda: app_state.agent_name("builtin") != "builtin", "its name")
        assert [app_state.agent_name(id) for id in ("builtin", "codex")] == [robot.name, "codex"]
        chat = shown.chat
        assert chat is not None
        await eventually(lambda: chat.transcript is not None, "the history")
        chat.record.awaiting_input = True
        said(app_state.replicas[shown.shown.replica_id], ask(Story()).events)
        app_state.publish(ChatChange(shown.shown.replica_id, chat.id))
        await eventually(lambda: shown.question.border_title == "The Robot asks for permission")
        await desk.see("alpha · The Robot")
        assert chat_tab(chat, app_state.agent_name).label.endswith(robot.name)
