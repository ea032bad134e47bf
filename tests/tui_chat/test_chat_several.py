"""Several chats of a replica."""

import asyncio
from collections.abc import Awaitable, Callable
from errno import ENOSPC
from uuid import UUID

import pytest

from quarterdeck.client.client import Client
from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatState
from quarterdeck.transcript.fold import Transcript
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.wire.chats import Chat, CreateChat
from tests.support.waiting import eventually
from tests.tui_chat.desk import opened
from tests.tui_shell.frozen import START, FrozenCockpit
from tests.tui_shell.live import Desk, Installation


def pane(desk: Desk) -> ChatPane:
    return desk.app.screen.query_one(ChatPane)


async def test_a_chat_is_made_switched_renamed_and_deleted(live: Installation) -> None:
    made = await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        first = pane(desk).chat_id
        await desk.write("half a thought")
        await desk.press("ctrl+n")
        await desk.see("New chat: which agent", "Built-in")
        await desk.write("built")
        await desk.press("enter")
        await eventually(lambda: pane(desk).chat_id != first, "the new chat")
        second = pane(desk).chat_id
        await desk.see("[builtin]")
        assert pane(desk).composer.text == ""
        await desk.write("another thought")
        await desk.press("ctrl+pageup")
        await eventually(lambda: pane(desk).chat_id == first)
        assert pane(desk).composer.text == "half a thought"
        await desk.press("ctrl+pagedown")
        await eventually(lambda: pane(desk).composer.text == "another thought")

        await desk.press("tab", "r")
        await desk.see("Rename the chat")
        await desk.press("enter")
        await desk.see("A name has 1 to 100 characters.")
        await desk.write("reviews")
        await desk.press("enter")
        await desk.see("[reviews]")

        await desk.press("x")
        await desk.see("Delete the chat reviews?")
        await desk.press("y")
        await eventually(lambda: pane(desk).chat_id == first, "the chat that is left")
        await desk.miss("reviews")
        await desk.press("x")
        await desk.see("The only chat cannot be deleted")
        async with live.client() as client:
            assert [chat.id for chat in await client.chats.list(made.id)] == [first]
            assert second != first


@pytest.mark.long
async def test_a_chat_that_is_deleted_elsewhere_gives_way_to_another(live: Installation) -> None:
    made = await live.create("alpha")
    async with live.cockpit() as desk, live.client() as client:
        await opened(desk, "alpha")
        first = pane(desk).chat_id
        other = await _another(client, desk, made.id)
        await client.chats.delete(made.id, first)
        await eventually(lambda: pane(desk).chat_id == other, "the other chat")
        await desk.write("goes there")
        await desk.press("enter")
        await desk.see("goes there")


@pytest.mark.long
async def test_the_reader_finds_their_place_again(live: Installation) -> None:
    made = await live.create("alpha", "```sh\nseq 200\n```")
    async with live.cockpit() as desk, live.client() as client:
        await opened(desk, "alpha")
        await desk.see("1 block ran")
        first = pane(desk).chat_id
        await _another(client, desk, made.id)
        await desk.press("tab", "up", "up", "enter", "home")
        await eventually(lambda: pane(desk).transcript.reading_position.block_id is not None)
        stood = pane(desk).transcript.reading_position
        await desk.press("ctrl+pagedown")
        await eventually(lambda: pane(desk).chat_id != first)
        assert pane(desk).transcript.reading_position.block_id is None
        await desk.press("ctrl+pageup")
        await eventually(lambda: pane(desk).chat_id == first)
        assert pane(desk).transcript.reading_position == stood


def second_chat_of_a_replica(frozen: FrozenCockpit) -> Chat:
    chat = Chat(id=UUID(int=9), provider="builtin", created_at=START, updated_at=START)
    frozen.add("alpha").chats[chat.id] = ChatState(chat, transcript=Transcript([]))
    return chat


def refusing(error: Exception, when: asyncio.Event) -> Callable[..., Awaitable[None]]:
    """Sends nothing: raises the error once `when` is set."""

    async def send(*_: object, **__: object) -> None:
        await when.wait()
        raise error

    return send


async def test_a_message_refused_after_a_switch_is_the_draft_of_its_chat(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()
    chat = second_chat_of_a_replica(frozen)
    error = ClientError("too much", next_step="Send less.")
    monkeypatch.setattr(frozen.app_state.outbox, "send", refusing(error, refused))
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.composer)
        first = pane.chat_id
        pane.messages.attach_upload("notes.txt", "upload")
        pane.composer.goal_mode = True
        await pilot.press(*"write")
        await pilot.press("enter", "ctrl+pagedown")
        await eventually(lambda: pane.chat_id == chat.id)
        refused.set()
        await eventually(lambda: frozen.app_state.disk.draft(first) == "write")
        assert pane.composer.text == ""
        await pilot.press("ctrl+pageup")
        await eventually(lambda: pane.chat_id == first)
        assert pane.composer.text == "write"
        assert pane.composer.goal_mode
        assert [one.name for one in pane.messages.draft.attachments] == ["notes.txt"]


async def test_a_message_refused_after_a_switch_is_not_lost_on_a_full_disk(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()
    chat = second_chat_of_a_replica(frozen)
    full = OSError(ENOSPC, "No space left on device")
    monkeypatch.setattr(frozen.app_state.outbox, "send", refusing(full, refused))

    def save_draft(*_: object) -> None:
        raise full

    monkeypatch.setattr(frozen.app_state.disk, "save_draft", save_draft)
    async with frozen.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        pane = frozen.screen.query_one(ChatPane)
        await eventually(lambda: frozen.focused is pane.composer)
        first = pane.chat_id
        await pilot.press(*"write")
        await pilot.press("enter", "ctrl+pagedown")
        await eventually(lambda: pane.chat_id == chat.id)
        refused.set()
        await eventually(lambda: pane.shown.problem.startswith("not sent"))
        await eventually(lambda: not any(one.group == "send" for one in frozen.workers))
        assert pane.shown.problem.startswith("not sent")
        await pilot.press("ctrl+pageup")
        await eventually(lambda: pane.chat_id == first)
        assert pane.composer.text == "write"


async def _another(client: Client, desk: Desk, replica_id: UUID) -> UUID:
    made = await client.chats.create(replica_id, CreateChat(provider="builtin", title="second"))
    await desk.see("second")
    return made.id
