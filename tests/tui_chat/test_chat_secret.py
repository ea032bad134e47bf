"""A secret answer is seen by nobody, and kept nowhere."""

from pathlib import Path

import pytest

from quarterdeck.tui.panes.chat import ChatPane
from tests.support.trees import files_under
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, Story, said, screen_text

SECRET = "hunter2xyz"


def kept(directory: Path) -> bytes:
    return b"".join(content for _, content in files_under(directory))


async def test_a_secret_is_masked_and_never_written_down(
    frozen: FrozenCockpit, tmp_path: Path
) -> None:
    state = frozen.add("alpha", awaiting_input=True)
    story = Story().user("log in")
    story.add(
        "acp-permission_request", requestId="r", title="Password?", acceptsText=True, secret=True
    )
    said(state, story.events)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await eventually(lambda: "Secret answer" in screen_text(frozen))
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.writing_target)
        await pilot.press(*SECRET)
        await eventually(lambda: "•" * len(SECRET) in screen_text(frozen), "the masked text")
        # The keys that lead to the composer lead here.
        await pilot.press("tab", "m", "enter")
        await eventually(lambda: "not answered" in screen_text(frozen), "the refusal")
        assert frozen.focused is pane.writing_target
        assert pane.writing_target.value == SECRET
        assert SECRET not in screen_text(frozen)
    assert (tmp_path / "client").parent.exists()
    assert SECRET.encode() not in kept(tmp_path)


@pytest.mark.long
async def test_what_was_being_written_comes_back_behind_the_secret(frozen: FrozenCockpit) -> None:
    state = frozen.add("alpha")
    story = Story().user("log in")
    said(state, story.events)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.composer)
        await pilot.press(*"half")
        story.add(
            "acp-permission_request",
            requestId="r",
            title="Password?",
            acceptsText=True,
            secret=True,
        )
        said(state, story.events)
        chat = state.first_chat
        assert chat is not None
        chat.record.awaiting_input = True
        pane.show_state()
        await eventually(lambda: frozen.focused is not pane.composer)
        await pilot.press(*SECRET)
        await pilot.pause()
        assert pane.composer.text == "half"
        chat.record.awaiting_input = False
        pane.show_state()
        await eventually(lambda: frozen.focused is pane.composer)
        await pilot.press("!")
        await eventually(lambda: pane.composer.text == "half!")
