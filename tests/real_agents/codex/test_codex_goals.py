"""Goals: codex works towards them by itself, one turn at a time as the engine asks."""

import asyncio
import os
import signal
from typing import Any

import pytest

from quarterdeck.agents.codex.session import CodexSession
from quarterdeck.agents.port import (
    AgentDiedError,
    GoalReport,
    GoalWish,
    Prompt,
    StopReason,
    TurnOutcome,
)
from quarterdeck.wire.chats import Base64Source, GoalStatus, Image
from tests.real_agents.codex.place import Place
from tests.real_agents.model.dialect import USAGE

pytestmark = pytest.mark.long

A_TURN = USAGE["input"] - USAGE["cached"] + USAGE["output"]
"""What codex counts for one answer of the model."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def wish(objective: str, **more: Any) -> GoalWish:
    return GoalWish(objective, **{"token_budget": 100_000, **more})


async def set_goal(session: CodexSession, objective: str, **more: Any) -> TurnOutcome:
    goal = wish(objective, fresh=True, **more)
    return await session.prompt(Prompt("m", objective, goal=goal))


async def go_on(session: CodexSession, objective: str, **more: Any) -> TurnOutcome:
    """The next turn towards the goal."""
    asked = Prompt("m", "go on", goal=wish(objective, **more), continuation=True)
    return await session.prompt(asked)


def status(outcome: TurnOutcome) -> GoalStatus:
    assert outcome.goal is not None
    return outcome.goal.status


async def test_codex_goes_on_by_itself_until_the_goal_is_reached(place: Place) -> None:
    session = await place.open()
    objective = "1: say one\n2: say two\n3: goal complete\n3: say three"
    outcome = await set_goal(session, objective)
    assert outcome.goal == GoalReport(GoalStatus.ACTIVE, A_TURN, outcome.goal.time_used_seconds)
    assert place.heard.text() == "one"
    assert status(await go_on(session, objective)) == GoalStatus.ACTIVE
    assert place.heard.text() == "onetwo"
    last = await go_on(session, objective)
    # The answer that ends the goal may be counted or not: codex does both at once.
    assert status(last) == GoalStatus.COMPLETE and last.goal.tokens_used >= 2 * A_TURN
    assert place.heard.text() == "onetwothree"
    assert len(place.model.requests) == 4


async def test_the_model_says_that_it_is_blocked(place: Place) -> None:
    session = await place.open()
    assert status(await set_goal(session, "goal blocked")) == GoalStatus.BLOCKED


async def test_the_budget_ends_the_work(place: Place) -> None:
    session = await place.open()
    budget = {"token_budget": A_TURN + 1}
    assert status(await set_goal(session, "say x", **budget)) == GoalStatus.ACTIVE
    outcome = await go_on(session, "say x", **budget)
    assert status(outcome) == GoalStatus.BUDGET_LIMITED and outcome.goal.tokens_used == 2 * A_TURN
    asked = len(place.model.requests)
    await session.prompt(Prompt("m", "say y", goal=wish("say x", active=False)))
    assert len(place.model.requests) == asked + 1


async def test_a_used_up_account_ends_the_work(place: Place) -> None:
    session = await place.open()
    objective = "1: say one\n2: fail 429 usage_limit_reached"
    assert status(await set_goal(session, objective)) == GoalStatus.ACTIVE
    outcome = await go_on(session, objective)
    assert outcome.stop_reason == StopReason.FAILED and "usage limit" in (outcome.error or "")
    assert status(outcome) == GoalStatus.USAGE_LIMITED
    again = await session.prompt(Prompt("m", "say y", goal=wish("x", active=False)))
    assert again.stop_reason == StopReason.END_TURN


async def test_stop_means_that_nothing_goes_on(place: Place) -> None:
    session = await place.open()
    turn = asyncio.create_task(set_goal(session, "wait gate\nsay never"))
    await place.model.waits("gate")
    await session.interrupt()
    outcome = await turn
    assert outcome.stop_reason == StopReason.CANCELLED and status(outcome) == GoalStatus.PAUSED
    place.model.release("gate")
    asked = len(place.model.requests)
    await session.prompt(Prompt("m", "say hello", goal=wish("wait gate\nsay never", active=False)))
    assert len(place.model.requests) == asked + 1
    resumed = await go_on(session, "wait gate\nsay never")
    assert status(resumed) == GoalStatus.ACTIVE and place.heard.text().endswith("never")


async def test_paused_by_hand_the_turn_ends_and_no_other_begins(place: Place) -> None:
    session = await place.open()
    turn = asyncio.create_task(set_goal(session, "wait gate\nsay x"))
    await place.model.waits("gate")
    await session.change_goal(wish("wait gate\nsay x", active=False))
    place.model.release("gate")
    assert status(await turn) == GoalStatus.PAUSED
    asked = len(place.model.requests)
    await session.prompt(Prompt("m", "say y", goal=wish("wait gate\nsay x", active=False)))
    assert len(place.model.requests) == asked + 1


async def test_a_message_that_says_what_a_paused_goal_says_is_only_a_message(place: Place) -> None:
    session = await place.open()
    paused = wish("say hello", active=False, fresh=True)
    async with asyncio.timeout(60):
        outcome = await session.prompt(Prompt("m", "say hello", goal=paused))
    assert outcome.stop_reason == StopReason.END_TURN and status(outcome) == GoalStatus.PAUSED
    assert place.heard.text() == "hello"


async def test_a_persons_message_goes_first(place: Place) -> None:
    session = await place.open()
    objective = "1: say one\n2: wait gate\n3: say three\n4: goal complete"
    await set_goal(session, objective)
    await place.model.waits("gate")  # codex works already, unasked
    await session.prompt(Prompt("m", "say hello", goal=wish(objective)))
    assert place.heard.text() == "onehello"
    place.model.release("gate")
    await go_on(session, objective)
    assert place.heard.text() == "onehellothree"


async def test_stopped_between_turns_what_codex_began_unasked_ends(place: Place) -> None:
    session = await place.open()
    objective = "1: say one\n2: wait gate"
    await set_goal(session, objective)
    await place.model.waits("gate")
    await session.change_goal(wish(objective, active=False))
    place.model.release("gate")
    asked = len(place.model.requests)
    await session.prompt(Prompt("m", "say y", goal=wish(objective, active=False)))
    assert len(place.model.requests) == asked + 1


async def test_another_objective_begins_to_count_anew(place: Place) -> None:
    session = await place.open()
    await set_goal(session, "goal blocked")
    for _ in range(3):
        outcome = await set_goal(session, "1: say other\n2: goal complete")
        # Codex may or may not have counted the request in which the goal was completed.
        assert outcome.goal.tokens_used in (0, A_TURN)


async def test_a_goal_set_by_hand_starts_the_work(place: Place) -> None:
    session = await place.open()
    await session.change_goal(wish("say by hand", fresh=True))
    outcome = await go_on(session, "say by hand")
    assert status(outcome) == GoalStatus.ACTIVE and place.heard.text() == "by hand"


async def test_a_goal_that_comes_with_an_image(place: Place) -> None:
    session = await place.open()
    image = Image(
        type="image", source=Base64Source(type="base64", media_type="image/png", data=PIXEL)
    )
    goal = wish("goal complete", fresh=True)
    asked = Prompt("m", "goal complete", images=[image], goal=goal, model="gpt-5.5")
    outcome = await session.prompt(asked)
    assert "data:image/png" in str(place.model.requests[0].body["input"])
    outcome = (
        outcome if status(outcome) != GoalStatus.ACTIVE else await go_on(session, "goal complete")
    )
    assert status(outcome) == GoalStatus.COMPLETE


async def test_the_model_of_a_goal_is_the_one_that_was_asked_for(place: Place) -> None:
    session = await place.open()
    goal = wish("goal complete", fresh=True)
    await session.prompt(
        Prompt("m", "goal complete", goal=goal, model="gpt-5.5", thinking_level="high")
    )
    body = place.model.requests[-1].body
    assert (body["model"], body["reasoning"]["effort"]) == ("gpt-5.5", "high")


async def test_killed_it_goes_on_with_the_goal_when_asked(place: Place) -> None:
    session = await place.open()
    objective = "1: say one\n2: wait gate\n3: goal complete"
    await set_goal(session, objective)
    turn = asyncio.create_task(go_on(session, objective))
    await place.model.waits("gate")
    os.kill(place.pid(session), signal.SIGKILL)
    with pytest.raises(AgentDiedError):
        await turn
    outcome = await go_on(session, objective)
    assert status(outcome) == GoalStatus.COMPLETE
    assert place.heard.text().startswith("one")


async def test_reopened_a_goal_rests_until_it_is_asked_for(place: Place) -> None:
    first = await place.open()
    objective = "1: say one\n2: wait gate\n3: goal complete"
    await set_goal(first, objective)
    await place.model.waits("gate")
    await first.close()
    asked = len(place.model.requests)
    second = await place.open(session_id=first.id)
    await second.prompt(Prompt("m", "say hello", goal=wish(objective, active=False)))
    assert len(place.model.requests) == asked + 1
    outcome = await go_on(second, objective)
    assert status(outcome) == GoalStatus.COMPLETE
