"""Search in all chats, and going to what was found."""

from datetime import datetime

import pytest

from quarterdeck.store import commands, event_reducer
from quarterdeck.store.signals import TranscriptChanged
from quarterdeck.transcript.blocks import UserBlock
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.wire.chats import SendMessage
from tests.support.waiting import eventually
from tests.tui_shell.live import Installation


@pytest.mark.parametrize(
    "page", [pytest.param(3, marks=pytest.mark.long), 200], ids=["older page", "newest page"]
)
async def test_a_text_is_found_and_shown_in_its_chat(
    live: Installation, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    for module in (commands, event_reducer):
        monkeypatch.setattr(module, "PAGE", page)
    await live.create("beta", "nothing here")
    made = await live.create("alpha", "the needle of the first message")
    async with live.client() as client:
        for n in range(5):
            body = SendMessage(message=f"other words {n}", chat_id=made.chats[0].id)
            await client.messages.send(made.id, body)

        async def indexed() -> bool:
            return bool((await client.history.search("words 4")).hits)

        await eventually(indexed)
    async with live.cockpit() as desk:
        await desk.see("beta")
        await desk.press("f3")
        await desk.see("Search in all chats", "a turn is searched once it has ended")
        await desk.write("hay")
        await desk.see("Nothing found.")
        await desk.press("ctrl+u")
        await desk.write("first needl")
        await desk.see("alpha", "> the needle of the first message")
        await desk.miss(f"{datetime.now().astimezone():%d %b}")
        await desk.press("enter")
        await eventually(lambda: desk.focus == "ChatTranscript", "the transcript")
        pane = desk.app.screen.query_one(ChatPane)

        def at_the_text() -> bool:
            block = pane.transcript.cursor_block
            return isinstance(block, UserBlock) and "needle" in block.text

        await eventually(at_the_text, "the text")
        await desk.see("the needle of the first message")
        pane.take([TranscriptChanged(pane.replica_id, pane.chat_id, None)])  # of the same
        assert at_the_text() and not pane.transcript.following
        await desk.press("f3")
        await desk.see("Search in all chats")
        await desk.press("escape")
        await desk.miss("Search in all chats")


@pytest.mark.long
async def test_an_unreachable_service_is_named(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit((40, 24)) as desk:
        await desk.see("alpha")
        live.kill()
        await desk.press("f3")
        await desk.see("Search in all chats", "turn is searched once it has", "ended.")
        await desk.write("x")
        await desk.see("service")
        await desk.press("enter", "escape")
        await desk.miss("Search in all chats")
