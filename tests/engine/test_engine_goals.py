"""Goals: set, pursued turn after turn, judged, limited, paused, and never lost."""

import asyncio
import math
from uuid import UUID, uuid4

import pytest

from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.wire.engine import ChangeGoal, OpenChat, RenameEngineChat


async def started(place, agents):
    catalog = agents.FakeCatalog()
    await place.start(catalog)
    return catalog.fake, await place.entries(), await place.link()


async def new_chat(link, provider: str = "fake") -> UUID:
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider=provider))
    return chat


def goal_of(entries):
    changed = [e.payload["chat"] for e in entries.all if e.type == "chat.updated"]
    return changed[-1]["goal"] if changed else None


def said(entries, newest: float = math.inf) -> list[str]:
    """The prompts of all turns, or of those up to a journal entry."""
    deltas = [e for e in entries.all if e.type == "chat.turn.delta" and e.index <= newest]
    events = [e.payload["event"] for e in deltas]
    return [e["payload"]["text"] for e in events if e["type"] == "user-message"]


async def settled(entries, wait_until, status: str):
    def there():
        goal = goal_of(entries)
        last = [e.payload["chat"] for e in entries.all if e.type == "chat.updated"]
        return goal and goal["status"] == status and not last[-1]["processing"] and goal

    return await wait_until(there)


async def test_a_goal_is_pursued_until_the_agent_says_complete(
    place, agents, message, wait_until
) -> None:
    fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    first = message(chat, "goal steps 3", goal_mode=True, model="m", thinking_level="high")
    await link.chat_send(first)
    goal = await settled(entries, wait_until, "complete")
    assert goal["objective"] == "goal steps 3"
    assert goal["tokensUsed"] == 30 and goal["tokenBudget"] is None
    prompts = fake.sessions[0].prompts
    assert len(prompts) == 3
    assert "GOAL: complete" in prompts[0].text and "goal steps 3" in prompts[2].text
    assert {(p.model, p.thinking_level) for p in prompts} == {("m", "high")}
    assert said(entries)[0] == "goal steps 3" and len(said(entries)) == 3
    turns = [
        e.type for e in entries.all if e.type.startswith("chat.turn.") and "delta" not in e.type
    ]
    assert turns == ["chat.turn.accepted", "chat.turn.started", "chat.turn.completed"] * 3


@pytest.mark.parametrize(
    ("objective", "status", "turns"),
    [
        ("goal stuck", "blocked", 1),
        ("goal idle", "blocked", 4),
        ("goal limited", "usage_limited", 1),
    ],
)
async def test_how_a_goal_ends(
    place, agents, message, wait_until, objective, status, turns
) -> None:
    fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, objective, goal_mode=True))
    await settled(entries, wait_until, status)
    assert len(fake.sessions[0].prompts) == turns


async def test_a_goal_whose_turn_fails_is_blocked(place, agents, message, wait_until) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "die", goal_mode=True))
    await settled(entries, wait_until, "blocked")


@pytest.mark.parametrize(("budget", "turns"), [(29, 3), (30, 3), (31, 4)])
async def test_the_budget_ends_it_at_its_bound(place, agents, wait_until, budget, turns) -> None:
    fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    asked = ChangeGoal(chat_id=chat, objective="goal endless", token_budget=budget)
    answer = await link.chat_goal(asked)
    assert answer.goal is not None and answer.goal.status == "active"
    goal = await settled(entries, wait_until, "budget_limited")
    assert goal["tokensUsed"] == turns * 10 == len(fake.sessions[0].prompts) * 10
    again = await link.chat_goal(ChangeGoal(chat_id=chat, status="active"))
    assert again.goal is not None and again.goal.status == "budget_limited"
    more = ChangeGoal(chat_id=chat, status="active", token_budget=turns * 10 + 10)
    assert (await link.chat_goal(more)).goal.status == "active"
    await wait_until(lambda: goal_of(entries)["tokensUsed"] == turns * 10 + 10)
    await settled(entries, wait_until, "budget_limited")


async def test_user_messages_go_first_and_a_new_objective_replaces(
    place, agents, message, wait_until
) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "goal endless", goal_mode=True))
    await entries.wait("chat.turn.completed", 2)
    await link.chat_send(message(chat, "say aside"))
    renamed = await link.chat_rename(RenameEngineChat(chat_id=chat, title="Aside"))
    await wait_until(lambda: "say aside" in said(entries))
    begun = said(entries).index("say aside")
    assert begun <= len(said(entries, renamed.index)) + 1, "it waited for turns of the goal"
    await wait_until(lambda: len(said(entries)) > begun + 2)  # and the goal goes on after it
    answer = await link.chat_goal(ChangeGoal(chat_id=chat, objective="goal stuck"))
    assert (answer.goal.tokens_used, answer.goal.status) == (0, "active")
    goal = await settled(entries, wait_until, "blocked")
    assert goal["objective"] == "goal stuck" and goal["tokensUsed"] == 10


async def test_a_goal_paused_between_two_turns_leaves_the_chat_idle(
    place, agents, message, wait_until, between_turns
) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    between_turns(lambda: link.chat_goal(ChangeGoal(chat_id=chat, status="paused")))
    await link.chat_send(message(chat, "goal wait", goal_mode=True))
    ended = await entries.wait("chat.turn.completed")
    assert ended.payload["processing"] is True  # the next turn was to follow
    await settled(entries, wait_until, "paused")
    assert len(said(entries)) == 1, "a paused goal went on"


async def test_interrupting_pauses_and_resuming_goes_on(place, agents, message, wait_until) -> None:
    fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, "goal wait", goal_mode=True))
    await entries.wait("chat.turn.started", 2)
    await wait_until(lambda: fake.sessions[0].turns == 2)
    assert (await link.chat_interrupt(chat)).interrupted
    await settled(entries, wait_until, "paused")
    prompts = len(fake.sessions[0].prompts)
    await link.chat_send(message(chat, "say still here"))
    await entries.wait("chat.turn.completed", 3)
    assert len(fake.sessions[0].prompts) == prompts + 1, "a paused goal went on"
    await link.chat_goal(ChangeGoal(chat_id=chat, status="active"))
    await wait_until(lambda: fake.sessions[0].turns == 3)
    answer = await link.chat_goal(ChangeGoal(chat_id=chat, status="paused"))
    assert answer.goal.status == "paused"
    await link.chat_interrupt(chat)


@pytest.mark.parametrize("first", ["goal wait", "wait"])
async def test_interrupting_pauses_a_goal_that_was_set_during_the_turn(
    place, agents, message, wait_until, first
) -> None:
    fake, entries, link = await started(place, agents)
    chat = await new_chat(link)
    await link.chat_send(message(chat, first, goal_mode=first.startswith("goal")))
    turns = 2 if first == "goal wait" else 1
    await wait_until(lambda: fake.sessions and len(fake.sessions[0].prompts) == turns)
    await link.chat_goal(ChangeGoal(chat_id=chat, objective="goal endless"))
    assert (await link.chat_interrupt(chat)).interrupted
    goal = await settled(entries, wait_until, "paused")
    assert (goal["objective"], goal["tokensUsed"]) == ("goal endless", 0)
    await link.chat_send(message(chat, "say still here"))
    await entries.wait("chat.turn.completed", turns + 1)
    assert len(fake.sessions[0].prompts) == turns + 1, "a paused goal went on"


async def test_interrupting_between_two_turns_pauses_the_goal(
    place, agents, message, wait_until, between_turns
) -> None:
    _, entries, link = await started(place, agents)
    chat = await new_chat(link)
    interrupting: list[asyncio.Task] = []

    async def interrupt() -> None:
        """Begins to; it waits for the end of the turn, which is being kept."""
        interrupting.append(asyncio.create_task(link.chat_interrupt(chat)))
        await link.status()  # calls of a link are begun in their order

    between_turns(interrupt)
    await link.chat_send(message(chat, "goal wait", goal_mode=True))
    await settled(entries, wait_until, "paused")
    assert not (await interrupting[0]).interrupted
    assert len(said(entries)) == 1, "a paused goal went on"


async def test_a_goal_paused_while_the_agent_takes_it_is_paused_there_as_well(
    place, agents, message, wait_until
) -> None:
    catalog = agents.FakeCatalog()
    await place.start(catalog)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link, "native")
    await link.chat_send(message(chat, "wait"))
    await wait_until(lambda: catalog.native.sessions and catalog.native.sessions[0].prompts)
    session = catalog.native.sessions[0]
    session.taking.clear()
    setting = asyncio.create_task(link.chat_goal(ChangeGoal(chat_id=chat, objective="win")))
    await wait_until(lambda: session.wishes)
    assert (await link.chat_interrupt(chat)).interrupted
    await settled(entries, wait_until, "paused")
    session.taking.set()
    answer = await setting
    assert answer.goal is not None and answer.goal.status == "paused"
    assert [wish.active for wish in session.wishes] == [True, False]


async def test_what_cannot_be_changed(place, agents, message, wait_until) -> None:
    _, entries, link = await started(place, agents)
    chat, plain = await new_chat(link), await new_chat(link, "plain")
    for change in ({"status": "active"}, {"token_budget": 5}):
        with pytest.raises(EngineRefusedError, match="no goal"):
            await link.chat_goal(ChangeGoal(chat_id=chat, **change))
    with pytest.raises(EngineRefusedError, match="no chat"):
        await link.chat_goal(ChangeGoal(chat_id=uuid4(), objective="x"))
    assert (await link.chat_goal(ChangeGoal(chat_id=plain, objective="x"))).goal is None
    await link.chat_send(message(plain, "say hello", goal_mode=True))
    await entries.wait("chat.turn.completed")
    assert goal_of(entries) is None
    await link.chat_send(message(chat, "goal stuck", goal_mode=True))
    await settled(entries, wait_until, "blocked")
    with pytest.raises(EngineRefusedError, match="blocked"):
        await link.chat_goal(ChangeGoal(chat_id=chat, status="paused"))


async def test_a_killed_engine_goes_on_with_the_goal(place, agents, message, wait_until) -> None:
    program = (agents.__file__, str(place.run_dir))
    engine = await place.spawn(program=program)
    entries, link = await place.entries(), await place.link()
    chat = await new_chat(link)
    await link.chat_send(message(chat, "goal endless", goal_mode=True))
    await entries.wait("chat.turn.completed", 2)
    engine.kill()
    await asyncio.to_thread(engine.wait)
    await place.spawn(program=program)
    again, link = await place.entries(after=0), await place.link()
    before = (await wait_until(lambda: goal_of(entries)))["tokensUsed"]
    await wait_until(lambda: (goal_of(again) or {"tokensUsed": 0})["tokensUsed"] > before + 20)
    await link.chat_goal(ChangeGoal(chat_id=chat, status="paused"))
    await settled(again, wait_until, "paused")
    ids = [e.payload["messageId"] for e in again.all if e.type == "chat.turn.started"]
    assert len(ids) == len(set(ids)), "a turn ran twice"
