"""Messages put into the running turn or joined, with a real engine and agents that follow a script."""

import asyncio
import base64
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.wire.agents import Agent
from tests.fleet.conftest import World
from tests.fleet.scripted import AGENTS
from tests.fleet.test_service_queue import busy, finish, ids, path, ran
from tests.fleet.test_service_queued_uploads import queue as queue_upload
from tests.support.waiting import eventually

STEERED = Agent(id="codex", name="Steered", available=True, supports_steer=True)


@pytest.fixture
def world(scripted: World) -> World:
    scripted.agents = [*AGENTS, STEERED]
    return scripted


async def steer(world: World, made: str, chat: str, message: str) -> Any:
    return await world.client.post(path(made, chat, f"/{message}/steer"))


async def join(world: World, made: str, chat: str, *messages: str) -> Any:
    body = {"messageIds": list(messages)} if messages else {}
    return await world.client.post(path(made, chat, "/join"), json=body)


def texts(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["message"] for one in answer.json()["queue"]]


async def history(world: World, made: str, **query: Any) -> dict[str, Any]:
    return (await world.client.get(f"/v1/replica/{made}/history", params=query)).json()


async def steered_turn(world: World) -> tuple[str, str, str]:
    """A replica whose codex has been asked to wait, and has said so."""
    made = await world.create()
    sent = await world.send(made, "wait", coding_agent="codex")
    await eventually(lambda: said(world, made, "waiting"), "the agent's turn")
    return made, sent["chat_id"], sent["message_id"]


async def said(world: World, made: str, text: str) -> bool:
    return any(text in str(one) for one in await world.events(made, "chat.turn.delta"))


async def test_a_message_that_was_just_sent_is_put_into_the_turn(world: World) -> None:
    made, chat, running = await steered_turn(world)
    later = await world.send(made, "say later", chat_id=chat)
    sent = await world.send(made, "faster", chat_id=chat)
    answer = await steer(world, made, chat, sent["message_id"])
    assert ids(answer) == [later["message_id"]] and answer.json()["interrupted"] is False
    again = await steer(world, made, chat, sent["message_id"])
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
    await world.post(made, f"/chats/{chat}/interrupt")
    await world.done(made, later["message_id"])
    assert await ran(world, made) == [running, later["message_id"]]
    page = await history(world, made, chat_id=chat)
    shown = [one["payload"] for one in page["events"] if one["type"] == "user-message"]
    assert [(one["text"], one.get("steered")) for one in shown] == [
        ("wait", None), ("faster", True), ("say later", None),
    ]  # fmt: skip
    first, second = page["agentAspTranscript"]["turns"]
    messages = [item["id"] for item in first["items"] if item["type"] == "userMessage"]
    assert (first["id"], messages) == (running, [running, sent["message_id"]])
    assert second["id"] == later["message_id"]
    updates = [
        one for one in await world.events(made, "chat.updated") if "steeredMessageIds" in one
    ]
    assert [one["steeredMessageIds"] for one in updates] == [[sent["message_id"]]]


async def test_what_the_agent_refuses_still_waits(world: World) -> None:
    made, chat, _ = await steered_turn(world)
    sent = await world.send(made, "refuse", chat_id=chat)
    answer = await steer(world, made, chat, sent["message_id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert "still waits" in answer.json()["error"]
    planned = await world.send(made, "say x", chat_id=chat, plan_mode=True)
    answer = await steer(world, made, chat, planned["message_id"])
    assert answer.status_code == 409 and "plan mode" in answer.json()["error"]
    queue = await world.queue(made, chat)
    assert [one["id"] for one in queue["queue"]] == [sent["message_id"], planned["message_id"]]


async def test_a_turn_that_takes_none_is_interrupted_for_the_message(world: World) -> None:
    made, chat, (running, a, b) = await busy(world, 2)
    await eventually(lambda: said(world, made, "available_commands"), "the agent's turn")
    answer = await steer(world, made, chat, b)
    assert answer.json()["interrupted"] is True
    assert await finish(world, made, 3) == [running, b, a]


@pytest.mark.long
async def test_steering_without_a_running_turn_is_refused(world: World) -> None:
    made = await world.create()
    await world.post(made, "/sleep")
    await world.reach(made, "sleeping")
    done = await world.send(made, "say 1")
    chat, message = done["chat_id"], done["message_id"]
    await world.done(made, message)
    answer = await steer(world, made, chat, message)
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert (await steer(world, made, chat, str(uuid4()))).status_code == 404
    assert (await steer(world, made, str(uuid4()), message)).status_code == 404


@pytest.mark.long
async def test_a_question_has_to_be_answered_first(world: World) -> None:
    made = await world.create()
    sent = await world.send(made, "ask")

    async def asking() -> bool:
        return (await world.get(made))["asking"]

    await eventually(asking, "a question")
    late = await world.send(made, "say more")
    answer = await steer(world, made, sent["chat_id"], late["message_id"])
    assert answer.status_code == 409 and "Answer its question" in answer.json()["error"]


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


@pytest.mark.long
async def test_messages_are_joined_with_their_images_and_files(world: World) -> None:
    made, chat, (running, a, b) = await busy(world, 2)
    c = await world.send(made, "say c", images=[IMAGE])
    d = await world.send(made, "say d", images=[IMAGE])
    answer = await join(world, made, chat, d["message_id"], b, c["message_id"])
    assert texts(answer) == ["say 0", "say 1\n\nsay c\n\nsay d"]
    first, joined = ids(answer)
    assert first == a and joined not in (b, c["message_id"], d["message_id"])
    assert (await join(world, made, chat, b, a)).status_code == 404
    assert (await join(world, made, chat, running, a)).status_code == 409
    assert (await join(world, made, chat, a)).status_code == 400
    assert (await join(world, made, chat, a, a)).status_code == 400
    assert (await join(world, made, str(uuid4()))).status_code == 404
    assert await finish(world, made, 3) == [running, a, joined]
    page = await history(world, made)
    shown = [one["payload"] for one in page["events"] if one["type"] == "user-message"][-1]
    assert shown["messageId"] == joined and len(shown["images"]) == 2
    assert set(page["canceledMessageIds"]) == {b, c["message_id"], d["message_id"]}
    assert not any("joined" in one for one in await world.events(made, "chat.updated"))


@pytest.mark.long
async def test_messages_that_wait_for_a_replica_are_joined_with_their_files(world: World) -> None:
    made, chat, (running, a) = await busy(world, 1)
    assert (await world.post(made, "/sleep")).status_code == 200
    uploads = [await queue_upload(world, made, name) for name in ("a.txt", "b.txt")]
    world.driver.gate = asyncio.Event()
    b, c = [
        await world.send(made, f"say {id}", chat_id=chat, canvasUploadIds=[id]) for id in uploads
    ]
    answer = await join(world, made, chat, c["message_id"], b["message_id"])
    assert texts(answer) == ["say 0", "\n\n".join(f"say {id}" for id in uploads)]
    _, joined = ids(answer)
    told = (await world.events(made, "chat.updated"))[-1]
    assert told["queue"] == [a, joined]
    assert told["canceledMessageIds"] == [b["message_id"], c["message_id"]]
    assert (await world.get(made))["status"] == "preparing"
    world.driver.gate.set()
    assert await finish(world, made, 3) == [running, a, joined]
    shown = [one["event"]["payload"] for one in await world.events(made, "chat.turn.delta")]
    files = next(one["uploads"] for one in shown if one.get("messageId") == joined)
    assert [Path(file).name for file in files] == ["a.txt", "b.txt"]


@pytest.mark.long
async def test_messages_that_differ_are_not_joined(world: World) -> None:
    made, chat, (_, a) = await busy(world, 1)
    planned = await world.send(made, "/plan say b")
    command = await world.send(made, "/review it")
    many = await world.send(made, "say c", images=[IMAGE] * 20)
    one = await world.send(made, "say d", images=[IMAGE])
    for other, why in (
        (planned, "differ in plan, goal or fast mode"),
        (command, "command"),
    ):
        answer = await join(world, made, chat, a, other["message_id"])
        assert answer.status_code == 409 and why in answer.json()["error"]
    answer = await join(world, made, chat, many["message_id"], one["message_id"])
    assert answer.status_code == 409 and "20 images" in answer.json()["error"]
    assert len((await world.queue(made, chat))["queue"]) == 5
