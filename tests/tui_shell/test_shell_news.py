"""What ended while nobody looked is news: behind a page, in another window, with no cockpit open."""

from pathlib import Path
from uuid import UUID

import pytest
from textual import events

from quarterdeck.client.stream_events import Received
from quarterdeck.tui.panes import replica as pane_module
from quarterdeck.wire.chats import SendMessage
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation

NEVER = 3_600.0


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


def new(desk: Desk, name: str) -> bool:
    """Whether a replica is in the list with a turn that was not seen."""
    return any(one.unseen for one in desk.app.app_state.replicas.values() if one.name == name)


@pytest.mark.long
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


@pytest.mark.long
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
        await desk.see("✓ newest", "✓ older", "unused")
        unseen = {one.name for one in desk.app.app_state.replicas.values() if one.unseen}
        assert unseen == {"newest", "older"}


@pytest.mark.long
async def test_a_look_in_passing_marks_nothing_as_seen(
    live: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_module, "DWELL_SECONDS", NEVER)
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("No replicas")
    for name in ("first", "second"):
        record = await live.create(name)
        await turn(live, record.id)
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("✓ first", "✓ second")
        for key, name in (("j", "first"), ("k", "second")):
            await desk.press(key)
            await eventually(
                lambda name=name: desk.app.app_state.on_screen == desk.replica(name).id, name
            )
        assert desk.replica("first").unseen and desk.replica("second").unseen
        await desk.press("enter")
        await eventually(lambda: not desk.replica("second").unseen, "the replica that was opened")
        assert desk.replica("first").unseen
        monkeypatch.setattr(pane_module, "DWELL_SECONDS", 0.01)
        await desk.press("escape", "k")  # what was seen is below what was not
        await eventually(lambda: not desk.replica("first").unseen, "the one that is looked at")


@pytest.mark.long
async def test_a_key_goes_to_the_next_that_needs_the_user(
    live: Installation, tmp_path: Path
) -> None:
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("No replicas")
    for name in ("quiet", "first", "second"):
        record = await live.create(name)
        if name != "quiet":
            await turn(live, record.id)
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("✓ first", "✓ second", "quiet")
        await desk.press("ctrl+right_square_bracket")
        await eventually(lambda: not desk.replica("second").unseen, "the first one")
        await eventually(lambda: desk.focus == "Composer", "its composer")
        await desk.write("words")  # the key works also while one types
        await desk.press("ctrl+right_square_bracket")
        await eventually(lambda: not desk.replica("first").unseen, "the next one")
        await desk.press("ctrl+right_square_bracket")
        await desk.see("Nothing needs you")
        await desk.press("alt+2")
        await eventually(lambda: desk.focus == "TerminalView", "the terminal")
        for keys, name in ((("ctrl+g", "w"), "third"), (("ctrl+right_square_bracket",), "fourth")):
            record = await live.create(name)
            await turn(live, record.id)
            await eventually(lambda name=name: new(desk, name), "its turn")
            await desk.press(*keys)
            await eventually(lambda name=name: not desk.replica(name).unseen, name)
            await eventually(lambda: desk.focus == "Composer", "its composer")
            await desk.press("escape", "e")  # the next one is gone to from a page
            await desk.see("Everywhere")
