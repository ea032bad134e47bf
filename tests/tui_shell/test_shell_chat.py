"""A chat: sending, queueing, interrupting, older pages, and what a broken line does to it."""

import asyncio
from itertools import islice
from uuid import UUID

import pytest

from quarterdeck.client.client import Client
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.wire.chats import SendMessage
from tests.support.waiting import eventually, pauses
from tests.tui_shell.live import Desk, Installation


async def opened(desk: Desk, name: str) -> None:
    await desk.see(name)
    await desk.press("enter")
    await eventually(lambda: desk.focus == "Composer")


async def user_messages(client: Client, replica_id: UUID) -> list[str]:
    page = await client.history.page(replica_id, limit=400)
    return [e.payload["text"] for e in page.events if e.type == "user-message"]


async def test_a_message_waits_behind_the_turn_and_an_interrupt_ends_it(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.see("enter sends ", "tab transcript  esc list")
        assert "ctrl+x interrupt" not in desk.text
        await desk.write("```sh\nsleep 100\n```")
        await desk.press("enter")
        await desk.see("● working", "enter queues", "enter queue ", "ctrl+x interrupt  tab")
        await desk.write("next")
        await desk.press("enter")
        await desk.see("queued 1. next")
        await desk.press("ctrl+x")
        await desk.miss("queued 1.")
        await desk.see("○ idle")
        await desk.miss("ctrl+x interrupt")
        chat = desk.replica("alpha").first_chat
        assert chat is not None and chat.transcript is not None
        assert "cancelled" in {getattr(block, "reason", "") for block in chat.transcript.blocks}


@pytest.mark.long
async def test_what_is_typed_behind_enter_is_the_next_message(live: Installation) -> None:
    made = await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.see("enter sends ")
        for key in ["a", "b", "backspace", "c", "enter", "d"]:
            await desk.pilot.press(key) if key == "a" else desk.app._driver.send_message(
                key_of(key)
            )
        async with live.client() as client:
            for pause in islice(pauses(0.02), 100):
                if await user_messages(client, made.id):
                    break
                await desk.pilot.pause(pause)
            assert await user_messages(client, made.id) == ["ac"]
        await desk.see("│ d ")


@pytest.mark.long
async def test_a_block_is_copied_to_the_terminals_clipboard(live: Installation) -> None:
    await live.create("alpha", "```sh\ntrue\n```")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.see("1 block ran", "○ idle")
        await desk.press("tab", "end", "y")
        await eventually(lambda: desk.app.clipboard)
        await desk.see("characters sent")
        chat = desk.replica("alpha").first_chat
        assert chat is not None and chat.transcript is not None
        said = chat.transcript.blocks[-2]  # the last one ends the turn
        assert desk.app.clipboard == desk.app.screen.query_one(TranscriptView).text_of(said)


def key_of(key: str):
    from textual import events

    return events.Key(key, key if len(key) == 1 else None)


@pytest.mark.long
async def test_older_pages_come_when_the_reader_scrolls_up(live: Installation) -> None:
    made = await live.create("long")
    async with live.client() as client:
        for number in range(110):
            text = f"```sh\necho message-{number:03}\n```"
            await client.messages.send(made.id, SendMessage(message=text))
        for pause in islice(pauses(0.05), 400):
            if (await client.history.page(made.id, limit=1)).total >= 4 * 110:
                break
            await asyncio.sleep(pause)
    async with live.cockpit() as desk:
        await opened(desk, "long")
        await eventually(lambda: not desk.replica("long").works, "the end of all turns")
        await desk.see("message-109")
        chat = desk.replica("long").first_chat
        assert chat is not None and chat.transcript is not None
        begun = len(chat.transcript.blocks)
        assert chat.has_older
        await desk.press("tab")
        await eventually(lambda: desk.focus == "ChatTranscript")
        for _ in range(20):
            await desk.press("home")
            if not chat.has_older:
                break
            await desk.pilot.pause(0.1)
        await eventually(lambda: not chat.has_older, "the first page")
        assert len(chat.transcript.blocks) > begun
        await desk.press("home")
        await desk.see("message-000")


@pytest.mark.long
async def test_a_message_typed_while_the_service_is_down_is_sent_later_and_once(
    live: Installation,
) -> None:
    made = await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.see("enter sends ")
        live.kill()
        await desk.see("✗ offline", "enter queues locally", "enter queue ")
        await desk.write("first")
        await desk.press("enter")
        await desk.write("second")
        await desk.press("enter")
        await desk.see("unsent, will retry: second")
        live.start()
        await desk.see("online")
        await desk.miss("unsent, will retry")
        async with live.client() as client:
            for pause in islice(pauses(0.02), 100):
                if len(await user_messages(client, made.id)) == 2:
                    break
                await desk.pilot.pause(pause)
            await eventually(lambda: not desk.replica("alpha").works)
            assert await user_messages(client, made.id) == ["first", "second"]


@pytest.mark.long
async def test_a_draft_and_an_unsent_message_are_there_for_the_next_cockpit(
    live: Installation,
) -> None:
    made = await live.create("alpha")
    drafts = live.home / "kept"
    async with live.cockpit(drafts=drafts) as desk:
        await opened(desk, "alpha")
        live.kill()
        await desk.see("✗ offline")
        await desk.write("unsent")
        await desk.press("enter")
        await desk.see("unsent, will retry")
        await desk.write("half a thought")
        await desk.see("half a thought")
    live.start()
    await live.ready()
    async with live.cockpit(drafts=drafts) as desk:
        await opened(desk, "alpha")
        await desk.see("half a thought")
        async with live.client() as client:
            for pause in islice(pauses(0.02), 100):
                if await user_messages(client, made.id):
                    break
                await desk.pilot.pause(pause)
            assert await user_messages(client, made.id) == ["unsent"]


@pytest.mark.long
async def test_numbers_are_tabs_in_a_transcript_without_a_question(live: Installation) -> None:
    await live.create("alpha", "hello")
    async with live.cockpit() as desk:
        await opened(desk, "alpha")
        await desk.see("○ idle", "Other agents here")
        await desk.press("tab")
        await eventually(lambda: desk.focus == "ChatTranscript", "the transcript")
        await desk.press("4")
        await desk.see("[4 Files]")
