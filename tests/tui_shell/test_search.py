"""Search in all chats, and going to what was found."""

from datetime import datetime
from uuid import UUID

import pytest

from quarterdeck.store import commands, event_reducer
from quarterdeck.store.signals import TranscriptChanged
from quarterdeck.transcript.blocks import UserBlock
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.wire.chats import SendMessage
from quarterdeck.wire.search import SearchHit
from tests.support.waiting import eventually
from tests.tui_shell.frozen import START, FrozenCockpit, screen_text
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


async def test_names_of_replicas_are_a_column(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("fix-login", "a", "long-" * 10)

    async def search(_: str) -> list[SearchHit]:
        return [
            SearchHit(
                workspace_id=frozen.add(name).id,
                workspace_name=name,
                chat_id=UUID(int=1),
                ts=START,
                role="user",
                history_index=0,
                excerpt="the needle",
                matches=[],
            )
            for name in names
        ]

    monkeypatch.setattr(frozen.app_state.commands, "search", search)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.press("f3", *"needle")
        await eventually(lambda: screen_text(frozen).count("> the needle") == len(names))
        lines = [line for line in screen_text(frozen).splitlines() if "> the needle" in line]
        assert len({line.index("> the needle") for line in lines}) == 1, lines


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
