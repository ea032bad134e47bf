"""What an agent asks is answered through respond, once, and heard by the agent."""

import json
import signal
from typing import Any

import pytest

from quarterdeck.wire.agents import Agent
from tests.fleet.conftest import World
from tests.fleet.scripted import AGENTS
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database


async def history(world: World, made: str, type: str) -> list[dict[str, Any]]:
    events = (await world.client.get(f"/v1/replica/{made}/history")).json()["events"]
    return [one["payload"] for one in events if one["type"] == type]


async def said(world: World, made: str) -> list[str]:
    updates = await history(world, made, "acp-session_update")
    return [
        one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk"
    ]


async def awaits(world: World, made: str, wanted: bool) -> bool:
    return (await world.get(made))["chats"][0]["awaiting_input"] is wanted


async def asking(
    world: World, agent: str = "builtin", message: str = "ask"
) -> tuple[str, str, str]:
    """A replica whose agent asks: its id, its chat's, and the question's."""
    made = await world.create(message=message, coding_agent=agent)
    await eventually(lambda: awaits(world, made, True), "the question")
    (question,) = await history(world, made, "acp-permission_request")
    return made, (await world.get(made))["chats"][0]["id"], question["requestId"]


async def respond(world: World, made: str, chat: str, **body: str) -> tuple[int, str | None]:
    answer = await world.post(made, f"/chats/{chat}/respond", body)
    return answer.status_code, answer.json().get("code")


async def test_a_message_with_an_answer_comes_before_those_that_wait(scripted: World) -> None:
    made, chat, question = await asking(scripted)
    for text in ("first", "second"):
        await scripted.send(made, text)
    wrong = await respond(scripted, made, chat, requestId="none", optionId="yes", message="lost")
    assert wrong == (409, "CONFLICT")
    body = {"requestId": question, "optionId": "yes", "message": "because"}
    assert (await respond(scripted, made, chat, **body))[0] == 200

    async def ran() -> list[str] | None:
        texts = [one["text"] for one in await history(scripted, made, "user-message")]
        return texts if "second" in texts else None

    assert (await eventually(ran))[1:] == ["because", "first", "second"]

    async def rests() -> bool:
        return not (await scripted.get(made))["chats"][0]["processing"]

    await eventually(rests)
    late = await respond(scripted, made, chat, **body | {"message": "late"})
    assert late == (409, "CONFLICT")
    last = await scripted.send(made, "last")
    await scripted.done(made, last["message_id"])
    assert (await ran() or [])[1:] == ["because", "first", "second", "last"]


@pytest.mark.long
async def test_a_question_after_a_turn_is_asked_in_a_turn_of_the_agents_own(
    scripted: World,
) -> None:
    made, chat, question = await asking(scripted, message="later")
    detail = await scripted.get(made)
    assert detail["asking"] and detail["chats"][0]["processing"]
    waiting = await scripted.send(made, "next")
    assert (waiting["status"], waiting["position"]) == ("queued", 1)
    later = await scripted.send(made, "last")
    assert (later["status"], later["position"]) == ("queued", 2)
    await respond(scripted, made, chat, requestId=question, optionId="yes")

    async def ended() -> bool:
        return len(await scripted.events(made, "chat.turn.completed")) == 4

    await eventually(ended, "the turns")
    _, own, third, _ = await scripted.events(made, "chat.turn.started")
    assert own["origin"] == "agent" and "origin" not in third
    assert third["messageId"] == waiting["message_id"]
    assert await history(scripted, made, "turn-started") == [
        {"messageId": own["messageId"], "origin": "agent"}
    ]
    assert len(await said(scripted, made)) == 3


@pytest.mark.long
async def test_a_turn_of_the_agents_own_is_kept_over_sleep(scripted: World) -> None:
    made, _, question = await asking(scripted, message="later")
    assert (await scripted.post(made, "/sleep")).status_code == 200
    assert not (await scripted.get(made))["chats"][0]["awaiting_input"]
    (asked,) = await history(scripted, made, "acp-permission_request")
    assert asked["requestId"] == question
    assert [one["stopReason"] for one in await history(scripted, made, "turn-result")] == [
        "end_turn",
        "cancelled",
    ]


@pytest.mark.long
async def test_a_question_is_answered_once_with_one_of_its_options(scripted: World) -> None:
    made, chat, question = await asking(scripted)
    refused, late = (400, "INVALID_REQUEST"), (409, "CONFLICT")
    for body, expected in (
        ({"requestId": question, "optionId": "no"}, refused),
        ({"requestId": question, "text": "yes"}, refused),
        ({"requestId": question}, refused),
        ({"requestId": question, "optionId": "yes", "text": "yes"}, refused),
        ({"requestId": "other", "optionId": "yes"}, late),
    ):
        assert await respond(scripted, made, chat, **body) == expected, body
    assert await awaits(scripted, made, True)
    path = f"/v1/workspaces/{made}/chats/{chat}/respond"
    body = {"requestId": question, "optionId": "yes"}
    answer = await scripted.client.post(path, json=body)
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert await respond(scripted, made, chat, **body) == late
    await eventually(lambda: scripted.events(made, "chat.turn.completed"), "the turn")
    assert await awaits(scripted, made, False)
    chosen = {"outcome": "selected", "optionId": "yes"}
    assert [json.loads(one) for one in await said(scripted, made)] == [{"outcome": chosen}]
    (outcome,) = await history(scripted, made, "acp-permission_outcome")
    assert outcome == {"requestId": question, "outcome": chosen}


async def test_a_question_is_answered_in_words(scripted: World) -> None:
    scripted.agents = [*AGENTS, Agent(id="claude", name="Asks", available=True)]
    made, chat, question = await asking(scripted, "claude")
    assert await respond(scripted, made, chat, requestId=question, text="blue, please") == (
        200,
        None,
    )
    await eventually(lambda: scripted.events(made, "chat.turn.completed"), "the turn")
    assert await said(scripted, made) == ["was told blue, please"]
    assert await respond(scripted, made, chat, requestId=question, text="red") == (409, "CONFLICT")


@pytest.mark.long
@pytest.mark.parametrize("end", ["interrupt", "kill"])
async def test_a_question_of_a_turn_that_ended_is_no_longer_awaited(
    scripted: World, end: str
) -> None:
    made, chat, question = await asking(scripted)
    if end == "interrupt":
        await scripted.post(made, f"/chats/{chat}/interrupt")
    else:
        scripted.driver.signal(made, signal.SIGKILL)
    await eventually(lambda: scripted.events(made, "chat.turn.completed"), "the turn")
    await eventually(lambda: awaits(scripted, made, False), "the end of the question")
    answer = await respond(scripted, made, chat, requestId=question, optionId="yes")
    assert answer == (409, "CONFLICT")


@pytest.mark.long
async def test_a_question_is_not_answered_asleep(scripted: World) -> None:
    made, chat, question = await asking(scripted)
    await scripted.post(made, "/sleep")
    assert await awaits(scripted, made, False)
    answer = await respond(scripted, made, chat, requestId=question, optionId="yes")
    assert answer == (409, "WORKSPACE_NOT_ACTIVE")
