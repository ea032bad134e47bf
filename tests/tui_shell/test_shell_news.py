"""What ended while nobody looked is news: behind a page, in another window, with no cockpit open."""

from pathlib import Path
from uuid import UUID

import pytest
from textual import events

from quarterdeck.client.stream_events import Received
from quarterdeck.wire.chats import SendMessage
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation


async def turn(live: Installation, replica_id: UUID) -> None:
    """A whole one, to its end."""
    async with live.client() as client, client.events.stream(replica_id) as stream:
        await client.messages.send(replica_id, SendMessage(message="hello"))
        async for item in stream:
            if isinstance(item, Received) and item.event.type == "chat.turn.completed":
                return


async def ended(desk: Desk, name: str) -> None:
    """The cockpit has heard of the turn's end."""
    await eventually(lambda: desk.replica(name).done_at is not None, "the end of the turn")


@pytest.mark.parametrize("away", ["page", "window"])
async def test_what_is_shown_but_not_looked_at(live: Installation, away: str) -> None:
    record = await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await eventually(lambda: desk.app.app_state.on_screen == record.id, "its pane")
        if away == "page":
            await desk.press("e")
            await desk.see("Everywhere")
        else:
            desk.app.post_message(events.AppBlur())
            await eventually(lambda: not desk.app.app_focus, "the other window")
        await turn(live, record.id)
        await ended(desk, "alpha")
        assert desk.replica("alpha").unseen
        if away == "page":
            await desk.press("escape")
        else:
            desk.app.post_message(events.AppFocus())
        await eventually(lambda: not desk.replica("alpha").unseen, "a look at it")


async def test_what_was_done_while_no_cockpit_was_open(live: Installation, tmp_path: Path) -> None:
    before = await live.create("before")
    await turn(live, before.id)
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("before", "○ idle")
    await live.create("unused")
    for name in ("older", "newest"):
        record = await live.create(name)
        await turn(live, record.id)
    async with live.cockpit(drafts=tmp_path) as desk:
        # The pane of the newest is shown at once, and so it is seen.
        await desk.see("newest", "✓ older", "unused")
        unseen = {one.name for one in desk.app.app_state.replicas.values() if one.unseen}
        assert unseen - {"newest"} == {"older"}
