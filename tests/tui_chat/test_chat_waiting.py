"""What waits: the queue of the service, and messages that have not left."""

from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.client import Client
from quarterdeck.store.app_state import AppState
from quarterdeck.store.disk import ClientDisk
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.live import Installation

BUSY = "```sh\nsleep 100\n```"


@pytest.mark.long
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
        await desk.see("enter queues · alt+t steers · shift+tab edits")
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
        await desk.miss("shift+tab edits")


@pytest.mark.long
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


@pytest.mark.long
async def test_a_waiting_message_is_joined_to_the_one_before_it(live: Installation) -> None:
    made = await live.create("alpha", BUSY)
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await desk.see("enter queues · alt+t steers")
        for text in ("one", "two", "three"):
            await desk.write(text)
            await desk.press("enter")
            await desk.see(text)
        await desk.see("queued 3. three")
        await desk.press("shift+tab")
        await eventually(lambda: desk.focus == "QueueView")
        await desk.press("+")
        await desk.see("There is no message before it")
        await desk.press("j", "j", "+")
        await desk.see("queued 2. two three")
        waiting = (await client.messages.queue(made.id, pane.chat_id)).queue
        assert [message.message for message in waiting] == ["one", "two\n\nthree"]
        await desk.press("+")  # the cursor is on the joined message
        await desk.see("queued 1. one two three")


@pytest.mark.long
async def test_steering_an_agent_that_takes_no_messages_asks_and_interrupts(
    live: Installation,
) -> None:
    made = await live.create("alpha", BUSY)
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await running(client, made.id)
        for text in ("one", "two"):
            await desk.write(text)
            await desk.press("enter")
            await desk.see(text)
        await desk.see("queued 2. two")
        await desk.press("shift+tab")
        await eventually(lambda: desk.focus == "QueueView")
        await desk.press("j", "s")
        await desk.see("Interrupt the running turn?", "takes no messages while it works")
        await desk.press("escape")
        await desk.miss("Interrupt the running turn?")
        waiting = (await client.messages.queue(made.id, pane.chat_id)).queue
        assert [message.message for message in waiting] == ["one", "two"]
        await desk.press("s")
        await desk.see("Interrupt the running turn?")
        await desk.press("y")
        await desk.miss("queued 1.")
        assert await prompts(client, made.id) == [BUSY, "two", "one"]


@pytest.mark.long
async def test_what_is_written_is_sent_into_the_turn(live: Installation) -> None:
    made = await live.create("alpha", BUSY)
    async with live.cockpit() as desk, live.client() as client:
        pane = await opened(desk, "alpha")
        await running(client, made.id)
        await desk.write("waits")
        await desk.press("enter")
        await desk.see("queued 1. waits")
        await desk.write("faster")
        await desk.press("alt+t")
        await desk.see("Interrupt the running turn?")
        await desk.press("escape")
        await eventually(lambda: pane.composer.text == "faster", "the text again")
        await desk.press("alt+t")
        await desk.see("Interrupt the running turn?")
        await desk.press("y")
        await desk.miss("queued 1.")
        assert await prompts(client, made.id) == [BUSY, "faster", "waits"]
        await desk.write("idle")
        await desk.press("alt+t")  # no turn runs: it is sent
        await eventually(lambda: pane.composer.text == "")
        assert (await prompts(client, made.id, 4))[-1] == "idle"


async def running(client: Client, replica: UUID) -> None:
    """Waits until the agent works: what it runs is shown."""

    async def called() -> bool:
        page = await client.history.page(replica)
        return any("tool_call" in str(event.payload) for event in page.events)

    await eventually(called, "a tool call")


async def prompts(client: Client, replica: UUID, count: int = 3) -> list[str]:
    """The messages as the agent got them, once there are so many."""

    async def read() -> list[str] | None:
        page = await client.history.page(replica)
        sent = [e.payload["text"] for e in page.events if e.type == "user-message"]
        return sent if len(sent) >= count else None

    return await eventually(read, "the messages")


@pytest.mark.long
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
        await eventually(lambda: pane.composer.plan_mode, "plan mode")
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
