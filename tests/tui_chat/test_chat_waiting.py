"""What waits: the queue of the service, and messages that have not left."""

from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.store.app_state import AppState
from quarterdeck.store.disk import ClientDisk
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.live import Installation

BUSY = "```sh\nsleep 100\n```"


async def test_the_queue_is_reordered_edited_and_dropped(live: Installation) -> None:
    made = await live.create("alpha", BUSY)
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await desk.see("enter queues")
        for text in ("one", "two", "three"):
            await desk.write(text)
            await desk.press("enter")
            await desk.see(text)
        await desk.see("queued 3. three")
        await desk.press("shift+tab")
        await eventually(lambda: desk.focus == "QueueView")
        await desk.press("j", "j", "K")
        await desk.see("queued 2. three", "queued 3. two")
        await desk.press("K")
        await desk.see("queued 1. three")
        await desk.press("j", "d")
        await desk.miss("one")
        waiting = (await client.messages.queue(made.id, pane.chat_id)).queue
        assert [message.message for message in waiting] == ["three", "two"]
        await desk.press("e")
        await eventually(lambda: pane.composer.text == "two", "the text of the last one")
        assert desk.focus == "Composer"
        await desk.miss("queued 2.")
        await desk.press("ctrl+x")
        await desk.miss("queued 1.")


async def test_an_edited_message_goes_back_to_its_place(live: Installation) -> None:
    made = await live.create("alpha", BUSY)
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await desk.see("enter queues")
        for text in ("one", "two", "three"):
            await desk.write(text)
            await desk.press("enter")
            await desk.see(text)
        await desk.see("queued 3. three")
        await desk.press("shift+tab", "j", "e")
        await eventually(lambda: pane.composer.text == "two", "the text of the second one")
        await desk.write(" again")
        await desk.press("enter")
        await desk.see("queued 2. two again", "queued 3. three")
        await desk.press("shift+tab")
        await eventually(lambda: desk.focus == "QueueView")
        await desk.press("k", "k", "e")
        await eventually(lambda: pane.composer.text == "one", "the text of the first one")
        await desk.press("ctrl+u")
        await desk.write("four")
        await desk.press("enter")
        await desk.see("queued 1. two again", "queued 3. four")
        waiting = (await client.messages.queue(made.id, pane.chat_id)).queue
        assert [message.message for message in waiting] == ["two again", "three", "four"]


async def test_own_messages_that_have_not_left_are_moved_and_taken_back(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        pane = await opened(desk, "alpha")
        await desk.see("○ idle")
        live.kill()
        await desk.see("✗ offline")
        for text in ("first", "second"):
            await desk.write(text)
            await desk.press("enter")
            await desk.see(f"unsent, will retry: {text}")
        await desk.press("shift+tab", "j", "K")
        outbox = desk.app.app_state.outbox
        await eventually(
            lambda: [m.text for m in outbox.of_chat(pane.chat_id)] == ["second", "first"]
        )
        await desk.press("e")
        await eventually(lambda: pane.composer.text == "second")
        await desk.write(" again")
        await desk.press("enter")
        await eventually(
            lambda: [m.text for m in outbox.of_chat(pane.chat_id)] == ["second again", "first"]
        )
        await desk.press("shift+tab")
        await eventually(lambda: desk.focus == "QueueView")
        await desk.press("k", "k", "d")
        await eventually(lambda: [m.text for m in outbox.of_chat(pane.chat_id)] == ["first"])
        await desk.press("e")
        await eventually(lambda: pane.composer.text == "first")


async def test_the_order_of_unsent_messages_survives(tmp_path: Path) -> None:
    disk = ClientDisk(tmp_path)

    def unasked() -> None:
        raise AssertionError("nobody is asked")

    deck = AppState(unasked, endpoint="x", disk=disk)  # pyright: ignore[reportArgumentType]
    replica, chat = UUID(int=1), UUID(int=2)
    for text in "abcdefghijkl":
        await deck.outbox.send(replica, chat, text)
    assert [kept.text for kept in disk.outgoing()] == list("abcdefghijkl")
    for message in deck.outbox.of_chat(chat)[3:]:
        deck.outbox.drop(message)
    last = deck.outbox.of_chat(chat)[-1]
    assert deck.outbox.move(last, -1) and deck.outbox.move(last, -1)
    assert not deck.outbox.move(last, -1)
    assert [kept.text for kept in disk.outgoing()] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("typed", "budget"), [("", None), ("100k", 100_000), ("1,500", 1500), ("2m", 2_000_000)]
)
def test_a_budget_is_read_as_people_write_it(typed: str, budget: int | None) -> None:
    from quarterdeck.tui.panes.chat_dialogs import budget_of

    assert budget_of(typed) == budget


async def test_a_plan_is_accepted_or_changed(live: Installation) -> None:
    made = await live.create("alpha")
    async with live.cockpit((100, 90)) as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await desk.see("○ idle")
        await desk.press("ctrl+t")
        await desk.write("```sh\necho planned\n```")
        await desk.see("Message · plan mode")
        await desk.press("enter")
        await desk.see("Plan ready: alt+a approve")
        await desk.press("alt+c")
        assert pane.composer.plan_mode
        await desk.write("```sh\necho otherwise\n```")
        await desk.press("enter")
        await eventually(lambda: desk.text.count("Nothing was run") == 2, "the second plan")
        await desk.see("Plan ready")
        await desk.press("alt+a")
        await desk.see("Go ahead and implement it.")
        await desk.miss("Plan ready")
        page = await client.history.page(made.id)
        modes = [one.payload["planMode"] for one in page.events if one.type == "user-message"]
        assert modes == [True, True, False]
