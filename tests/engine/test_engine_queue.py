"""The queue changed by hand, and the end of a chat."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.wire.engine import Answer, CancelQueued, DeleteEngineChat, OpenChat, OrderQueue


async def started(place, agents):
    catalog = agents.FakeCatalog()
    await place.start(catalog)
    return catalog.fake, await place.entries(), await place.link()


async def new_chat(link) -> UUID:
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    return chat


async def busy(link, entries, message, chat: UUID, count: int) -> list[UUID]:
    """A chat with a running turn and so many messages behind it; the ids, the running one first."""
    sent = [message(chat, "wait"), *(message(chat, f"say {n}") for n in range(count))]
    for one in sent:
        await link.chat_send(one)
    await entries.wait("chat.turn.started")
    return [one.message_id for one in sent]


def ran(entries) -> list[str]:
    return [e.payload["messageId"] for e in entries.all if e.type == "chat.turn.started"]


async def test_canceled_messages_never_run(place, agents, message, wait_until) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    running, one, two, three = await busy(link, entries, message, chat, 3)
    coming = message(chat, "say late")
    asked = CancelQueued(chat_id=chat, message_ids=[running, one, coming.message_id])
    answer = await link.queue_cancel(asked)
    assert answer.canceled == [one, coming.message_id] and answer.started == [running]
    (told,) = await wait_until(
        lambda: [e for e in entries.all if e.payload.get("canceledMessageIds")]
    )
    assert told.index <= answer.index
    assert told.payload["queue"] == [str(two), str(three)]
    assert (await link.chat_send(coming)).queued is False  # known, and not run
    assert (await link.queue_cancel(asked)).canceled == [one, coming.message_id]
    await link.chat_interrupt(chat)
    await entries.wait("chat.turn.completed", 3)
    assert ran(entries) == [str(running), str(two), str(three)]


def chats_told(entries) -> list[dict[str, Any]]:
    return [e.payload["chat"] for e in entries.all if e.type == "chat.updated"]


async def test_a_queue_emptied_between_two_turns_leaves_the_chat_idle(
    place, agents, message, wait_until, between_turns
) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    running, waiting = await busy(link, entries, message, chat, 1)
    asked = CancelQueued(chat_id=chat, message_ids=[waiting])
    between_turns(lambda: link.queue_cancel(asked))
    await link.chat_interrupt(chat)
    ended = await entries.wait("chat.turn.completed")
    assert ended.payload["processing"] is True  # it had one to follow
    await wait_until(lambda: not chats_told(entries)[-1]["processing"])
    assert ran(entries) == [str(running)]
    counts = await entries.wait("engine.status.changed", 3)
    assert counts.payload["status"]["chatsProcessing"] == 0
    await link.chat_send(message(chat, "say more"))
    await entries.wait("chat.turn.completed", 2)
    await wait_until(lambda: not chats_told(entries)[-1]["processing"])


async def test_the_order_holds_also_for_what_is_on_its_way(place, agents, message) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    running, one, two = await busy(link, entries, message, chat, 2)
    late = message(chat, "say late")
    order = [two, late.message_id, one]
    answer = await link.queue_order(OrderQueue(chat_id=chat, message_ids=[running, *order]))
    assert answer.started == [running]
    delivered = await link.chat_send(late)
    assert (delivered.queued, delivered.position) == (True, 2)
    await link.chat_interrupt(chat)
    await entries.wait("chat.turn.completed", 4)
    assert ran(entries) == [str(id) for id in (running, *order)]


async def test_a_killed_engine_remembers_the_queue(place, agents, message) -> None:
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    running, one, two, three = await busy(link, entries, message, chat, 3)
    late = message(chat, "say late")
    await link.queue_order(OrderQueue(chat_id=chat, message_ids=[three, late.message_id, two, one]))
    await link.queue_cancel(CancelQueued(chat_id=chat, message_ids=[two]))
    await link.chat_send(late)
    engine.kill()
    await asyncio.to_thread(engine.wait)
    await place.spawn(program=program)
    again = await place.entries()
    await again.wait("chat.turn.completed", 4)
    expected = [running, three, late.message_id, one]
    assert ran(again) == [str(id) for id in expected]


@pytest.mark.long
async def test_held_queues_wait_for_their_release(place, agents, message) -> None:
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    running, one, two = await busy(link, entries, message, chat, 2)
    assert (await link.queue_held()).held is False
    engine.kill()
    await asyncio.to_thread(engine.wait)
    place.hold = True
    await place.spawn(program=program)
    again, link = await place.entries(), await place.link()
    await again.wait("chat.turn.completed")  # what was cut off is closed
    held = await link.queue_held()
    assert held.held and held.queues == {chat: [one, two]}
    await link.chat_send(message(chat, "say more"))
    await link.queue_cancel(CancelQueued(chat_id=chat, message_ids=[one]))
    assert ran(again) == [str(running)]
    await link.queue_release()
    await again.wait("chat.turn.completed", 3)
    assert ran(again)[:2] == [str(running), str(two)]


@pytest.mark.parametrize("told", [False, True])
async def test_a_deleted_chat_is_gone_for_good(place, agents, message, told) -> None:
    fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await busy(link, entries, message, chat, 2)
    await entries.wait("chat.turn.delta", 2)  # the message, and what the agent says
    state = place.root / "state" / "agents" / str(chat)
    assert state.is_dir()
    await link.chat_delete(DeleteEngineChat(chat_id=chat, logged=told))
    assert not state.exists() and fake.sessions[0].closed
    await entries.wait("chat.interrupted")
    types = entries.types()
    assert ("chat.deleted" in types) is not told
    assert len(ran(entries)) == 1, "a queued message ran"
    with pytest.raises(EngineRefusedError, match="deleted"):
        await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_delete(DeleteEngineChat(chat_id=chat))  # again: nothing to do
    unknown = uuid4()
    await link.chat_delete(DeleteEngineChat(chat_id=unknown))
    with pytest.raises(EngineRefusedError, match="deleted"):
        await link.chat_open(OpenChat(chat_id=unknown, provider="fake"))


async def test_an_answer_that_is_none_is_the_callers_fault(place, agents, message) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "ask"))
    await entries.wait("chat.turn.delta", 2)
    with pytest.raises(EngineRefusedError) as refused:
        await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="wrong"))
    assert refused.value.code == "INVALID_REQUEST"
    await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="yes"))
    await entries.wait("chat.turn.completed")
