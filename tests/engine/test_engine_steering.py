"""Messages that wait: put into the running turn, and joined to one."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.journal import Journal
from quarterdeck.wire.engine import Answer, ChangeGoal, JoinQueued, OpenChat, SteerQueued


async def started(place, agents, provider: str = "steered"):
    """An engine in this process, what it journals, a link, and a chat."""
    catalog = agents.FakeCatalog()
    await place.start(catalog)
    entries, link = await place.entries(), await place.link()
    return catalog, entries, link, await new_chat(link, provider)


async def new_chat(link, provider: str) -> UUID:
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider=provider))
    return chat


async def busy(link, entries, message, chat: UUID, *texts: str, running: str = "wait") -> list[Any]:
    """A chat whose turn is with its agent, and messages behind it; all, the running one first."""
    sent = [message(chat, running), *(message(chat, text) for text in texts)]
    for one in sent:
        await link.chat_send(one)
    await entries.wait_until(lambda: "acp-" in str(deltas(entries)))
    return sent


def deltas(entries) -> list[tuple[str, str]]:
    """The events of turns: the message of the turn, and what happened."""
    found = []
    for entry in entries.all:
        if entry.type == "chat.turn.delta":
            event = entry.payload["event"]
            payload = event["payload"]
            said = payload.get("content", {}).get("text") if "content" in payload else None
            what = payload.get("text") or said or payload.get("stopReason")
            mark = "steered " if payload.get("steered") else ""
            found.append((entry.payload["messageId"], f"{event['type']} {mark}{what}"))
    return found


def shown(entries, message) -> list[str]:
    """In which turns a message is shown."""
    return [
        entry.payload["messageId"]
        for entry in entries.all
        if entry.type == "chat.turn.delta"
        and entry.payload["event"]["type"] == "user-message"
        and entry.payload["event"]["payload"]["messageId"] == str(message.message_id)
    ]


def ran(entries) -> list[str]:
    return [e.payload["messageId"] for e in entries.all if e.type == "chat.turn.started"]


async def change_with(entries, field: str):
    """The first change of a chat that has a field."""
    await entries.wait_until(lambda: any(e.payload.get(field) for e in entries.all))
    return next(e for e in entries.all if e.payload.get(field))


async def test_a_message_is_put_into_the_running_turn(place, agents, message) -> None:
    catalog, entries, link, chat = await started(place, agents)
    running, one, two = await busy(link, entries, message, chat, "say one", "faster")
    answer = await link.queue_steer(SteerQueued(chat_id=chat, message_id=two.message_id))
    assert answer.interrupted is False
    (session,) = catalog.steered.sessions
    assert [prompt.text for prompt in session.steered] == ["faster"]
    told = await change_with(entries, "steeredMessageIds")
    assert told.index <= answer.index
    assert told.payload["steeredMessageIds"] == [str(two.message_id)]
    assert told.payload["queue"] == [str(one.message_id)]
    assert told.payload["chat"]["lastMessageText"] == "faster"
    await link.chat_interrupt(chat)
    await entries.wait("chat.turn.completed", 2)
    of_turn = str(running.message_id)
    assert [what for id, what in deltas(entries) if id == of_turn] == [
        "user-message wait",
        "acp-session_update waiting",
        "user-message steered faster",
        "acp-session_update steered by faster",
        "turn-result cancelled",
    ]
    assert ran(entries) == [of_turn, str(one.message_id)]
    again = SteerQueued(chat_id=chat, message_id=two.message_id)
    with pytest.raises(EngineRefusedError, match="no longer waits"):
        await link.queue_steer(again)


async def test_a_message_that_the_agent_refuses_waits_in_its_place(place, agents, message) -> None:
    _, entries, link, chat = await started(place, agents)
    running, one, two, three = await busy(
        link, entries, message, chat, "say one", "refuse", "say three"
    )
    with pytest.raises(EngineRefusedError, match=r"did not take the message\. The message still"):
        await link.queue_steer(SteerQueued(chat_id=chat, message_id=two.message_id))
    assert (await link.queue_held()).queues == {chat: [m.message_id for m in (one, two, three)]}
    await link.chat_interrupt(chat)
    await entries.wait("chat.turn.completed", 4)
    assert ran(entries) == [str(m.message_id) for m in (running, one, two, three)]
    assert shown(entries, two) == [str(two.message_id)]


async def test_a_message_that_needs_its_own_turn_is_refused(place, agents, message) -> None:
    _, entries, link, chat = await started(place, agents)
    await busy(link, entries, message, chat)
    kinds = {"goal_mode": True, "plan_mode": True, "fast_mode": True, "model": "other"}
    for field, value in kinds.items():
        asked = message(chat, "say x", **{field: value})
        await link.chat_send(asked)
        with pytest.raises(EngineRefusedError, match="a turn of its own"):
            await link.queue_steer(SteerQueued(chat_id=chat, message_id=asked.message_id))
    assert len((await link.queue_held()).queues[chat]) == len(kinds)


@pytest.mark.parametrize("provider", ["fake", "steered"])
async def test_nothing_is_steered_without_a_turn_or_with_an_open_question(
    place, agents, message, provider
) -> None:
    _, entries, link, chat = await started(place, agents, provider)
    with pytest.raises(EngineRefusedError, match="no message with this id"):
        await link.queue_steer(SteerQueued(chat_id=chat, message_id=uuid4()))
    _, one = await busy(link, entries, message, chat, "say one", running="ask")
    asked = SteerQueued(chat_id=chat, message_id=one.message_id)
    await entries.wait_until(
        lambda: any(
            e.type == "chat.updated" and e.payload["chat"]["awaitingInput"] for e in entries.all
        )
    )
    with pytest.raises(EngineRefusedError, match="Answer its question first"):
        await link.queue_steer(asked)
    await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="yes"))
    await entries.wait("chat.turn.completed", 2)


async def test_a_turn_that_takes_none_is_interrupted_and_the_message_is_next(
    place, agents, message
) -> None:
    _, entries, link, chat = await started(place, agents, "fake")
    running, one, two = await busy(link, entries, message, chat, "say one", "say two")
    answer = await link.queue_steer(SteerQueued(chat_id=chat, message_id=two.message_id))
    assert answer.interrupted is True
    await entries.wait("chat.turn.completed", 3)
    assert ran(entries) == [str(m.message_id) for m in (running, two, one)]
    assert shown(entries, two) == [str(two.message_id)]
    assert (str(running.message_id), "turn-result cancelled") in deltas(entries)


async def test_a_goal_stays_active_when_its_turn_gives_way(place, agents, message) -> None:
    catalog, entries, link, chat = await started(place, agents, "fake")
    await link.chat_send(message(chat, "goal wait", goal_mode=True))
    await entries.wait("chat.turn.started", 2)  # the second turn waits
    await entries.wait_until(lambda: len(catalog.fake.sessions[0].prompts) == 2)
    await link.chat_send(one := message(chat, "say one"))
    await link.queue_steer(SteerQueued(chat_id=chat, message_id=one.message_id))
    await entries.wait("chat.turn.completed", 3)
    await entries.wait("chat.turn.started", 4)  # and it goes on towards the goal
    assert ran(entries)[2] == str(one.message_id)
    newest = [e for e in entries.all if e.type == "chat.updated"][-1]
    assert newest.payload["chat"]["goal"]["status"] == "active"
    await link.chat_goal(ChangeGoal(chat_id=chat, remove=True))
    await link.chat_interrupt(chat)


async def test_a_message_that_comes_with_the_agents_death_is_in_the_turn_and_never_runs(
    place, agents, message
) -> None:
    _, entries, link, chat = await started(place, agents)
    running, one, two = await busy(link, entries, message, chat, "die", "say two")
    await link.queue_steer(SteerQueued(chat_id=chat, message_id=one.message_id))
    await entries.wait("chat.turn.completed", 2)
    assert ran(entries) == [str(m.message_id) for m in (running, two)]
    assert shown(entries, one) == [str(running.message_id)]


async def test_a_message_of_unknown_fate_is_in_the_turn_at_its_end(place, agents, message) -> None:
    _, entries, link, chat = await started(place, agents)
    running, one = await busy(link, entries, message, chat, "break")
    with pytest.raises(EngineRefusedError, match="failed at this call"):
        await link.queue_steer(SteerQueued(chat_id=chat, message_id=one.message_id))
    await link.chat_interrupt(chat)
    await entries.wait("chat.turn.completed")
    assert shown(entries, one) == [str(running.message_id)]
    assert ran(entries) == [str(running.message_id)]
    assert (await link.queue_held()).queues == {}


async def test_the_end_of_the_turn_waits_for_the_agents_answer(place, agents, message) -> None:
    catalog, entries, link, chat = await started(place, agents)
    running, one = await busy(link, entries, message, chat, "hold")
    asked = asyncio.create_task(
        link.queue_steer(SteerQueued(chat_id=chat, message_id=one.message_id))
    )
    (session,) = catalog.steered.sessions
    await session.held.wait()
    other = await place.link()
    stopping = asyncio.create_task(other.chat_interrupt(chat))
    await session._interrupted.wait()
    session.released.set()
    await asked
    await stopping
    of_turn = [what for id, what in deltas(entries) if id == str(running.message_id)]
    assert of_turn[-1] == "turn-result cancelled"
    assert "user-message steered hold" in of_turn
    assert ran(entries) == [str(running.message_id)]


async def test_an_engine_killed_between_shows_the_message_in_the_turn_and_never_runs_it(
    place, agents, message
) -> None:
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link, "steered")
    running, one, two = await busy(link, entries, message, chat, "hold", "say two")
    asked = asyncio.create_task(
        link.queue_steer(SteerQueued(chat_id=chat, message_id=one.message_id))
    )
    await entries.wait_until(lambda: '#{"kind":"steering"' in place.journal.read_text())
    engine.kill()
    await asyncio.to_thread(engine.wait)
    with pytest.raises(Exception, match="closed"):
        await asked
    await place.spawn(program=program)
    again, link = await place.entries(), await place.link()
    await again.wait("chat.turn.completed", 2)
    assert ran(again) == [str(m.message_id) for m in (running, two)]
    assert shown(again, one) == [str(running.message_id)]
    assert (await link.chat_send(one)).queued is False  # delivered again, it is known
    assert (await link.queue_held()).queues == {}


@pytest.mark.long
async def test_a_killed_engine_remembers_what_was_steered_or_refused(
    place, agents, message
) -> None:
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link, "steered")
    running, one, two, three = await busy(
        link, entries, message, chat, "say one", "refuse", "faster"
    )
    await link.queue_steer(SteerQueued(chat_id=chat, message_id=three.message_id))
    with pytest.raises(EngineRefusedError):
        await link.queue_steer(SteerQueued(chat_id=chat, message_id=two.message_id))
    engine.kill()
    await asyncio.to_thread(engine.wait)
    await place.spawn(program=program)
    again = await place.entries()
    await again.wait("chat.turn.completed", 3)
    assert ran(again) == [str(m.message_id) for m in (running, one, two)]
    assert shown(again, three) == [str(running.message_id)]


async def test_a_full_disk_leaves_the_message_in_the_queue(
    place, agents, message, monkeypatch
) -> None:
    _, entries, link, chat = await started(place, agents)
    _, one, two = await busy(link, entries, message, chat, "say one", "say two")
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", full)
        for id in (one.message_id, two.message_id):
            with pytest.raises(EngineRefusedError, match="Free some space"):
                await link.queue_steer(SteerQueued(chat_id=chat, message_id=id))
        parts = [one.message_id, two.message_id]
        joined = JoinQueued(chat_id=chat, message_ids=parts, message=message(chat, "say both"))
        with pytest.raises(EngineRefusedError, match="Free some space"):
            await link.queue_join(joined)
    assert (await link.queue_held()).queues == {chat: [one.message_id, two.message_id]}


async def full(*_: Any, **__: Any) -> int:
    from quarterdeck.engine.errors import JournalError

    raise JournalError("No space left on device")


async def test_messages_are_joined_to_one_in_the_place_of_the_first(place, agents, message) -> None:
    catalog, entries, link, chat = await started(place, agents, "fake")
    running, one, two, three = await busy(
        link, entries, message, chat, "say one", "say two", "say three"
    )
    parts = [two.message_id, three.message_id]
    joined = message(chat, "say two\n\nsay three")
    call = JoinQueued(chat_id=chat, message_ids=parts, message=joined)
    answer = await link.queue_join(call)
    assert (await link.queue_join(call)).index >= answer.index  # repeated, it changes nothing
    told = await change_with(entries, "joined")
    assert told.payload["canceledMessageIds"] == [str(id) for id in parts]
    assert told.payload["queue"] == [str(one.message_id), str(joined.message_id)]
    other = JoinQueued(
        chat_id=chat, message_ids=[running.message_id, one.message_id], message=message(chat, "x")
    )
    with pytest.raises(EngineRefusedError, match="no longer waits"):
        await link.queue_join(other)
    await link.chat_interrupt(chat)
    await entries.wait("chat.turn.completed", 3)
    assert ran(entries) == [str(m.message_id) for m in (running, one, joined)]
    assert catalog.fake.sessions[0].prompts[-1].text == "say two\n\nsay three"


@pytest.mark.long
async def test_a_killed_engine_remembers_what_was_joined(place, agents, message) -> None:
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link, "fake")
    running, one, two = await busy(link, entries, message, chat, "say one", "say two")
    late, joined = message(chat, "say late"), message(chat, "say all")
    parts = [one.message_id, late.message_id]
    await link.queue_join(JoinQueued(chat_id=chat, message_ids=parts, message=joined))
    await link.chat_send(late)  # it was on its way
    engine.kill()
    await asyncio.to_thread(engine.wait)
    await place.spawn(program=program)
    again = await place.entries()
    await again.wait("chat.turn.completed", 3)
    assert ran(again) == [str(m.message_id) for m in (running, joined, two)]
