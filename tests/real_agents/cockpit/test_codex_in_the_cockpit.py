"""What codex does is seen in the cockpit, and what it asks is answered there."""

import pytest

from quarterdeck.tui.widgets.composer import Composer
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation

pytestmark = pytest.mark.long


async def begun(desk: Desk) -> None:
    """Makes a replica for codex in the dialog, and goes to its chat."""
    await desk.press("n")
    await desk.see("New replica", "Codex")
    await desk.press("ctrl+s")
    await eventually(lambda: desk.focus == "Composer")
    await desk.see("enter sends ")


async def test_a_turn_streams_is_interrupted_and_asks(live: Installation) -> None:
    async with live.cockpit() as desk:
        await begun(desk)
        await desk.write("shell echo $((40+2)) > n; cat n\nsay it is done")
        await desk.press("enter")
        await desk.see("cat n", "it is done", "○ idle")
        await desk.write("say begun\nshell sleep 600")
        await desk.press("enter")
        await desk.see("sleep 600", "● working")
        await desk.press("ctrl+x")
        await desk.see("Interrupted", "○ idle")

        await desk.press("ctrl+t")
        await desk.write("ask Which way? | Left | Right\nsay thank you")
        await desk.press("enter")
        await desk.see("Which way?", "a Left", "type an answer below")
        await eventually(lambda: desk.focus == "QuestionView")
        # Not by a key: for a moment each is taken for the text that one was about to type.
        desk.app.screen.set_focus(desk.app.screen.query_one(Composer))
        await desk.see("enter answers")
        await desk.write("straight on")
        await desk.press("enter")
        await desk.see("Which way?: straight on", "thank you", "○ idle")
        assert desk.app.screen.query_one(Composer).text == ""
