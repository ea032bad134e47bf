import asyncio
from uuid import UUID, uuid4

import pytest

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.turns import DRIVER_FAILED
from quarterdeck.wire.agents import OwnAgent
from quarterdeck.wire.engine import Answer, GiveNotice, OpenChat, RenameEngineChat
from quarterdeck.wire.setup import Setup
from tests.support.waiting import WAIT_SECONDS

TURN = [
    "chat.turn.accepted", "chat.turn.started", "chat.updated", "chat.turn.delta",
    "chat.turn.delta", "chat.turn.delta", "chat.turn.completed", "chat.updated",
]  # fmt: skip


async def started(place, agents):
    catalog = agents.FakeCatalog()
    task = await place.start(catalog)
    entries = await place.entries()
    link = await place.link()
    return task, catalog.fake, entries, link


async def new_chat(link, provider: str = "fake") -> UUID:
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider=provider))
    return chat


def of_chat(entries, chat: UUID):
    def chat_of(payload) -> str | None:
        return payload.get("chatId") or payload.get("chat", {}).get("id")

    return [entry for entry in entries.all if chat_of(entry.payload) == str(chat)]


def deltas(entries, chat: UUID) -> list[tuple[str, dict]]:
    found = [e.payload["event"] for e in of_chat(entries, chat) if e.type == "chat.turn.delta"]
    return [(event["type"], event["payload"]) for event in found]


async def test_a_turn_in_the_contracts_order(place, agents, message):
    _, fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    assert (await link.chat_send(message(chat, "say hello"))).queued is False
    await entries.wait("chat.updated", 2)
    mine = of_chat(entries, chat)
    assert [entry.type for entry in mine] == TURN
    assert [entry.index for entry in entries.all] == list(range(1, len(entries.all) + 1))
    kinds = deltas(entries, chat)
    assert [kind for kind, _ in kinds] == ["user-message", "acp-session_update", "turn-result"]
    assert kinds[0][1]["text"] == "say hello"
    assert kinds[1][1]["sessionUpdate"] == "agent_message_chunk"
    assert kinds[2][1]["stopReason"] == "end_turn" and kinds[2][1]["usage"] == {"totalTokens": 3}
    assert kinds[2][1]["durationMs"] >= 0
    assert mine[2].payload["chat"]["processing"] is True
    assert mine[-2].payload["isComplete"] is True
    last = mine[-1].payload["chat"]
    assert last["processing"] is False and last["lastMessageText"] == "hello"
    spec = fake.opened[0]
    assert spec.working_directory == str(place.workspace)
    assert spec.state_directory == str(place.root / "state" / "agents" / str(chat))
    assert spec.environment["SHELL"] == "/bin/bash" and "PATH" in spec.environment


async def test_a_busy_chat_queues_in_order_and_repeats_run_once(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    first = message(chat, "wait")
    await link.chat_send(first)
    await entries.wait("chat.turn.started")
    rest = [message(chat, f"say {n}") for n in range(3)]
    places = [await link.chat_send(one) for one in rest]
    assert [(place.queued, place.position) for place in places] == [(True, 1), (True, 2), (True, 3)]
    repeated = await link.chat_send(rest[1])
    assert (repeated.queued, repeated.position) == (True, 2)
    assert (await link.chat_send(first)).queued is False
    stopped = await link.chat_interrupt(chat)
    assert stopped.interrupted
    await entries.wait("chat.turn.completed", 4)
    order = [e.payload["messageId"] for e in entries.all if e.type == "chat.turn.started"]
    assert order == [str(one.message_id) for one in (first, *rest)]
    assert entries.types().count("chat.turn.accepted") == 4


async def test_interrupting_tells_what_still_waits(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    nothing = await link.chat_interrupt(chat)
    assert nothing.interrupted is False and nothing.queue == []
    await link.chat_send(message(chat, "wait"))
    await entries.wait("chat.turn.delta", 2)
    waiting = message(chat, "wait")
    await link.chat_send(waiting)
    assert (await link.chat_interrupt(chat)).interrupted
    told = await entries.wait("chat.interrupted")
    assert told.payload["queue"] == [str(waiting.message_id)]
    ended = await entries.wait("chat.turn.completed")
    assert ended.payload["isComplete"] is False and ended.payload["processing"] is True
    assert ended.index < told.index
    assert deltas(entries, chat)[2][1]["stopReason"] == "cancelled"
    await entries.wait("chat.turn.started", 2)
    assert (await link.chat_interrupt(chat)).interrupted


async def test_an_agent_that_ignores_the_interrupt_is_ended(
    place, agents, message, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("quarterdeck.engine.turns.INTERRUPT_SECONDS", 0.2)
    _, fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "deaf"))
    await entries.wait("chat.turn.delta", 2)
    assert (await link.chat_interrupt(chat)).interrupted
    assert fake.sessions[0].closed
    await link.chat_send(message(chat, "say again"))
    await entries.wait("chat.turn.completed", 2)
    assert fake.opened[1].session_id == "session-1"


async def test_an_agent_that_dies_fails_the_turn_and_is_opened_again(place, agents, message):
    _, fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "die"))
    await link.chat_send(message(chat, "session"))
    await entries.wait("chat.turn.completed", 2)
    results = [payload for kind, payload in deltas(entries, chat) if kind == "turn-result"]
    assert results[0]["stopReason"] == "failed" and "status 9" in results[0]["error"]
    assert results[1]["stopReason"] == "end_turn"
    assert fake.sessions[0].closed and fake.opened[1].session_id == "session-1"
    assert entries.all[-1].payload.get("chat", {}).get("processing") is not True


async def test_an_unknown_agent_and_a_broken_driver_fail_the_turn(place, agents, message):
    _, _, entries, link = await started(place, agents)
    nobody, broken = await new_chat(link, "nobody"), await new_chat(link)
    await link.chat_send(message(nobody, "say x"))
    await link.chat_send(message(broken, "no such verb"))
    await entries.wait("chat.turn.completed", 2)
    assert "no agent 'nobody'" in deltas(entries, nobody)[-1][1]["error"]
    assert deltas(entries, broken)[-1][1]["error"] == DRIVER_FAILED


async def test_a_question_waits_for_its_answer(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "ask"))
    asked = await entries.wait("chat.updated", 2)
    assert asked.payload["chat"]["awaitingInput"] is True
    await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="allow"))
    await entries.wait("chat.turn.completed")
    with pytest.raises(EngineRefusedError) as late:
        await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="allow"))
    assert late.value.code == "CONFLICT"
    updates = [e.payload["chat"] for e in entries.all if e.type == "chat.updated"]
    assert [update["awaitingInput"] for update in updates[:3]] == [False, True, False]
    assert updates[-1]["lastMessageText"] == "was told allow"


def told_of(entries, chat: UUID) -> dict:
    """The chat as it was told last."""
    changes = [e for e in of_chat(entries, chat) if e.type == "chat.updated"]
    return changes[-1].payload["chat"]


async def test_a_finished_plan_waits_until_something_is_sent(place, agents, message):
    task, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "say a plan", plan_mode=True))
    await entries.wait("chat.updated", 2)
    assert told_of(entries, chat)["planReady"] is True
    (end,) = [e.payload for e in of_chat(entries, chat) if e.type == "chat.turn.completed"]
    assert end["planReady"] is True
    await link.chat_rename(RenameEngineChat(chat_id=chat, title="Named"))
    await entries.wait("chat.updated", 3)
    assert told_of(entries, chat)["planReady"] is True
    # The engine that takes the chats up again knows it too.
    await link.shutdown()
    await asyncio.wait_for(task, WAIT_SECONDS)
    seen = entries.all[-1].index
    await place.start(agents.FakeCatalog())
    again, link = await place.entries(after=seen), await place.link()
    await link.chat_rename(RenameEngineChat(chat_id=chat, title="Renamed"))
    await again.wait("chat.updated")
    assert told_of(again, chat)["planReady"] is True
    await link.chat_send(message(chat, "say done"))
    begun = await again.wait("chat.updated", 2)
    assert begun.payload["chat"]["planReady"] is False
    await again.wait("chat.updated", 3)
    assert told_of(again, chat)["planReady"] is False


@pytest.mark.parametrize("text", ["die", "wait"])
async def test_a_plan_that_failed_or_was_stopped_waits_for_nobody(place, agents, message, text):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, text, plan_mode=True))
    await entries.wait("chat.turn.delta", 2)
    await link.chat_interrupt(chat)
    await entries.wait("chat.updated", 2)
    assert told_of(entries, chat)["planReady"] is False


@pytest.mark.parametrize("text", ["approved", "many 0"])
async def test_a_turn_that_left_no_plan_waits_for_nobody(place, agents, message, text):
    """The plan was approved and carried out in the turn, or the turn had none."""
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, text, plan_mode=True))
    await entries.wait("chat.updated", 2)
    ended = await entries.wait("chat.turn.completed")
    assert ended.payload["isComplete"] is True and ended.payload["planReady"] is False


async def test_a_plan_with_a_message_behind_it_waits_for_nobody(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "ask", plan_mode=True))
    await entries.wait("chat.updated", 2)
    await link.chat_send(message(chat, "say next"))
    await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="allow"))
    await entries.wait("chat.turn.completed", 2)
    ends = [e.payload for e in of_chat(entries, chat) if e.type == "chat.turn.completed"]
    assert [end["planReady"] for end in ends] == [False, False]


async def test_a_chat_tells_since_when_its_turn_runs(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "ask"))
    await entries.wait("chat.updated", 2)
    begun, asked = [e.payload["chat"] for e in entries.all if e.type == "chat.updated"]
    assert begun["processingSince"] is not None
    assert asked["processingSince"] == begun["processingSince"]
    await link.chat_respond(Answer(chat_id=chat, request_id="q1", option_id="allow"))
    await entries.wait("chat.turn.completed")
    await entries.wait("chat.updated", 4)
    assert told_of(entries, chat)["processingSince"] is None


async def test_chats_are_made_once_and_renamed(place, agents):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_open(OpenChat(chat_id=chat, provider="other", title="no"))
    renamed = await link.chat_rename(RenameEngineChat(chat_id=chat, title="New name"))
    assert renamed.title == "New name" and renamed.provider == "fake"
    await entries.wait("chat.updated")
    assert "chat.created" not in entries.types()  # who made it has told it
    with pytest.raises(EngineRefusedError) as missing:
        await link.chat_rename(RenameEngineChat(chat_id=uuid4(), title="x"))
    assert missing.value.code == "NOT_FOUND"


async def test_odd_text_and_counts_are_journaled(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "unpaired"))
    await entries.wait("chat.turn.completed")
    assert deltas(entries, chat)[1][1]["content"]["text"].endswith(" half")
    status = await link.status()
    assert (status.chats_total, status.chats_processing) == (1, 0)
    counts = [e.payload["status"] for e in entries.all if e.type == "engine.status.changed"]
    assert [c["chatsProcessing"] for c in counts] == [0, 1, 0]


async def test_an_orderly_end_fails_the_turn_and_keeps_the_queue(place, agents, message):
    task, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "wait"))
    await entries.wait("chat.turn.delta", 2)
    await link.chat_send(message(chat, "say later"))
    await link.shutdown()
    await asyncio.wait_for(task, WAIT_SECONDS)
    await asyncio.wait_for(entries.link.wait_closed(), WAIT_SECONDS)
    last = await entries.wait("chat.turn.completed")
    assert last.payload["isComplete"] is False
    assert "was stopped" in deltas(entries, chat)[-1][1]["error"]
    seen = entries.all[-1].index
    await place.start(agents.FakeCatalog())
    again = await place.entries(after=seen)
    await again.wait("chat.turn.completed")
    assert "later" in [p["content"]["text"] for k, p in deltas(again, chat) if "session" in k]
    assert again.all[0].index == seen + 1


def spoken(entries, chat: UUID) -> list[str]:
    return [p["content"]["text"] for kind, p in deltas(entries, chat) if "session" in kind]


async def test_a_message_goes_by_the_model_chosen_last_in_its_chat(place, agents, message):
    _, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    told = [
        message(chat, "model"),
        message(chat, "model", usual_model="usual"),
        message(chat, "model", model="a", usual_model="usual"),
        message(chat, "model", usual_model="usual"),
        message(chat, "refuse", model="none"),
        message(chat, "model"),
        message(chat, "die", model="b"),
        message(chat, "model"),
    ]
    for number, one in enumerate(told, 1):
        await link.chat_send(one)
        await entries.wait("chat.turn.completed", number)
    assert spoken(entries, chat) == ["None", "usual", "a", "a", "a", "about to die", "b"]


async def test_the_chosen_model_outlives_the_engine(place, agents, message):
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "wait", model="a"))
    await entries.wait("chat.turn.delta", 2)
    engine.kill()
    await asyncio.to_thread(engine.wait)
    await asyncio.wait_for(entries.link.wait_closed(), WAIT_SECONDS)
    seen = entries.all[-1].index
    await place.spawn(program=program)
    again, link = await place.entries(after=seen), await place.link()
    await link.chat_send(message(chat, "model", usual_model="usual"))
    await again.wait("chat.turn.completed", 2)
    assert spoken(again, chat) == ["a"]


@pytest.mark.parametrize("by_request", [True, False])
async def test_a_turn_that_a_person_puts_to_rest_has_not_failed(place, agents, message, by_request):
    task, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "wait"))
    await entries.wait("chat.turn.delta", 2)
    await link.shutdown(by_request=by_request)
    await asyncio.wait_for(task, WAIT_SECONDS)
    await asyncio.wait_for(entries.link.wait_closed(), WAIT_SECONDS)
    (end,) = [payload for kind, payload in deltas(entries, chat) if kind == "turn-result"]
    assert end["stopped"] is True
    assert end["stopReason"] == ("cancelled" if by_request else "failed")
    assert bool(end["error"]) is not by_request
    assert bool(told_of(entries, chat)["turnFailed"]) is not by_request
    kinds = [entry.type for entry in of_chat(entries, chat)]
    assert ("chat.interrupted" in kinds) is by_request


@pytest.mark.long
async def test_a_killed_engine_closes_its_turn_and_goes_on_with_the_queue(place, agents, message):
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    first, second = message(chat, "wait"), message(chat, "session")
    await link.chat_send(first)
    await entries.wait("chat.turn.delta", 2)
    await link.chat_send(second)
    engine.kill()
    await asyncio.to_thread(engine.wait)
    await asyncio.wait_for(entries.link.wait_closed(), WAIT_SECONDS)
    seen = entries.all[-1].index
    await place.spawn(program=program)
    again, link = await place.entries(after=seen), await place.link()
    assert (await link.chat_send(first)).queued is False
    await link.chat_send(second)  # it waits still, or has begun
    await again.wait("chat.turn.completed", 2)
    assert [entry.index for entry in again.all] == list(range(seen + 1, seen + 1 + len(again.all)))
    ends = [p for kind, p in deltas(again, chat) if kind == "turn-result"]
    assert ends[0]["messageId"] == str(first.message_id) and ends[0]["stopReason"] == "failed"
    assert ends[0]["error"] == "The engine was restarted in the middle of this turn."
    assert ends[1]["messageId"] == str(second.message_id)
    assert spoken(again, chat) == ["session-1"], "the agent's session was not reopened"
    assert [k for k, _ in deltas(again, chat)].count("user-message") == 1


async def test_an_agent_is_given_a_notice_with_its_next_prompt_alone(place, agents, message):
    _, fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    notice = GiveNotice(chat_id=chat, text="say told")
    await link.chat_notice(notice)
    await link.chat_notice(notice)
    await link.chat_send(message(chat, "/compact"))  # which it fails to understand
    await link.chat_send(message(chat, "say hello"))
    await link.chat_send(message(chat, "say again"))
    await entries.wait("chat.turn.completed", 3)
    prompts = [prompt.text for session in fake.sessions for prompt in session.prompts]
    assert prompts == ["/compact", "say told\n\nsay hello", "say again"]
    said = [payload["text"] for kind, payload in deltas(entries, chat) if kind == "user-message"]
    assert said == ["/compact", "say hello", "say again"]
    with pytest.raises(EngineRefusedError):
        await link.chat_notice(GiveNotice(chat_id=uuid4(), text="x"))


async def test_a_notice_outlives_a_failed_turn_and_the_engine(place, agents, message):
    task, fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_notice(GiveNotice(chat_id=chat, text="die"))
    await link.chat_send(message(chat, "say one"))
    await entries.wait("chat.turn.completed")
    assert [prompt.text for prompt in fake.sessions[0].prompts] == ["die\n\nsay one"]
    _, fake, entries, link = await started_again(place, agents, task, link)
    await link.chat_notice(GiveNotice(chat_id=chat, text="say told"))
    await link.chat_send(message(chat, "say two"))
    await entries.wait("chat.turn.completed", 2)
    assert [prompt.text for prompt in fake.sessions[0].prompts] == ["die\n\nsay told\n\nsay two"]


async def test_a_notice_that_was_given_is_not_given_again_by_another_engine(place, agents, message):
    task, _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_notice(GiveNotice(chat_id=chat, text="say told"))
    await link.chat_send(message(chat, "say one"))
    await entries.wait("chat.turn.completed")
    await entries.wait("chat.updated", 2)
    _, fake, entries, link = await started_again(place, agents, task, link)
    await link.chat_send(message(chat, "say two"))
    await entries.wait("chat.turn.completed", 2)
    assert [prompt.text for prompt in fake.sessions[0].prompts] == ["say two"]


async def started_again(place, agents, task, link):
    await link.shutdown()
    await task
    return await started(place, agents)


@pytest.mark.parametrize("file", [None, ".plain/PLAIN.md"])
async def test_instructions_precede_the_first_message_to_an_agent_without_a_file(
    place, agents, message, file
):
    place.agents = {"plain": OwnAgent(name="Plain", command=("plain",), instructions=file)}
    place.setup = Setup(system_prompt="Be brief.")
    task, fake, entries, link = await started(place, agents)
    chat = await new_chat(link, "plain")
    known = await new_chat(link)
    for number, text in enumerate(("/slash first", "say hello", "say again"), 1):
        await link.chat_send(message(chat, text))
        await entries.wait("chat.turn.completed", number)
    await link.chat_send(message(known, "say known"))
    await entries.wait("chat.turn.completed", 4)
    told = [prompt.text for session in fake.sessions for prompt in session.prompts]
    preamble = "Instructions of the environment that you work in:\n\nBe brief.\n\n"
    second = ("" if file else preamble) + "say hello"
    assert told == ["/slash first", second, "say again", "say known"]
    shown = [payload["text"] for kind, payload in deltas(entries, chat) if kind == "user-message"]
    assert shown == ["/slash first", "say hello", "say again"]
    # The session that another engine takes up again has them already.
    await link.shutdown()
    await asyncio.wait_for(task, WAIT_SECONDS)
    again = agents.FakeCatalog()
    seen = entries.all[-1].index
    await place.start(again)
    entries, link = await place.entries(after=seen), await place.link()
    await link.chat_send(message(chat, "say later"))
    await entries.wait("chat.turn.completed")
    assert [prompt.text for prompt in again.fake.sessions[0].prompts] == ["say later"]
