"""The queue changed by hand, in every state, with a real engine and an agent that follows a script."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.fleet.conftest import World
from tests.support.waiting import eventually


@pytest.fixture
def world(scripted: World) -> World:
    return scripted


async def busy(world: World, count: int) -> tuple[str, str, list[str]]:
    """A replica whose first chat runs a turn and has so many messages behind it."""
    made = await world.create()
    sent = [await world.send(made, "wait")]
    sent += [await world.send(made, f"say {n}") for n in range(count)]

    async def delivered() -> bool:
        accepted = await world.events(made, "chat.turn.accepted")
        return len(accepted) > count and bool(await world.events(made, "chat.turn.started"))

    await eventually(delivered, "delivery")
    return made, sent[0]["chat_id"], [one["message_id"] for one in sent]


def path(made: str, chat: str, rest: str = "") -> str:
    return f"/v1/replica/{made}/chats/{chat}/queue{rest}"


async def reorder(world: World, made: str, chat: str, message: str, position: Any) -> Any:
    body = {"messageId": message, "position": position}
    return await world.client.patch(path(made, chat, "/reorder"), json=body)


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    assert answer.json()["success"] is True
    return [one["id"] for one in answer.json()["queue"]]


async def ran(world: World, made: str) -> list[str]:
    return [one["messageId"] for one in await world.events(made, "chat.turn.started")]


async def finish(world: World, made: str, count: int) -> list[str]:
    """Lets the turns end; the messages that ran, in order, once so many did."""
    world.driver.let_go(made)

    async def ended() -> bool:
        return len(await world.events(made, "chat.turn.completed")) >= count

    await eventually(ended, f"{count} turns")
    return await ran(world, made)


async def test_an_active_queue(world: World) -> None:
    made, chat, (running, *waiting) = await busy(world, 4)
    a, b, c, d = waiting
    queue = await world.queue(made, chat)
    assert queue["processing"] and [one["id"] for one in queue["queue"]] == waiting
    assert set(queue["queue"][0]) == {
        "id", "message", "queuedAt", "senderUserId", "senderEmail",
    }  # fmt: skip
    for position, expected in ((0, [d, a, b, c]), (3, waiting), (99, waiting), (1, [a, d, b, c])):
        assert ids(await reorder(world, made, chat, d, position)) == expected
    assert ids(await world.client.delete(path(made, chat, f"/{b}"))) == [a, d, c]
    for wrong in (-1, "1", 1.5, True, None):
        assert (await reorder(world, made, chat, a, wrong)).status_code == 400
    for message, status in ((running, 409), (b, 404), (str(uuid4()), 404), ("x", 400)):
        assert (await reorder(world, made, chat, message, 1)).status_code == status
        answer = await world.client.delete(path(made, chat, f"/{message}"))
        assert answer.status_code == status
    assert await finish(world, made, 4) == [running, a, d, c]
    assert (await world.client.delete(path(made, chat, f"/{a}"))).status_code == 409
    history = (await world.client.get(f"/v1/replica/{made}/history")).json()
    assert history["canceledMessageIds"] == [b]
    said = [
        one["payload"]["messageId"] for one in history["events"] if one["type"] == "user-message"
    ]
    assert said == [running, a, d, c]


@pytest.mark.long
async def test_clearing_an_active_queue(world: World) -> None:
    made, chat, (running, *waiting) = await busy(world, 3)
    assert ids(await world.client.delete(path(made, chat))) == []
    assert ids(await world.client.delete(path(made, chat))) == []
    later = (await world.send(made, "say more"))["message_id"]
    assert await finish(world, made, 2) == [running, later]
    history = (await world.client.get(f"/v1/workspaces/{made}/history")).json()
    assert history["canceledMessageIds"] == waiting


@pytest.mark.long
async def test_a_sleeping_queue_is_changed_without_waking(world: World) -> None:
    made, chat, (running, a, b, c) = await busy(world, 3)
    assert (await world.post(made, "/sleep")).status_code == 200
    starts = world.driver.calls["start"]
    assert ids(await reorder(world, made, chat, c, 0)) == [c, a, b]
    assert ids(await world.client.delete(path(made, chat, f"/{a}"))) == [c, b]
    assert (await world.client.delete(path(made, chat, f"/{running}"))).status_code == 409
    assert (await world.get(made))["status"] == "sleeping"
    assert world.driver.calls["start"] == starts
    told = (await world.events(made, "chat.updated"))[-1]
    assert (told["queue"], told["canceledMessageIds"]) == ([c, b], [a])
    world.driver.gate = asyncio.Event()
    waking = await world.send(made, "say late")
    assert waking["status"] == "waking"
    ids(await reorder(world, made, chat, waking["message_id"], 0))
    assert (await world.get(made))["status"] == "preparing"
    world.driver.gate.set()
    assert (await finish(world, made, 4))[1:] == [waking["message_id"], c, b]


@pytest.mark.long
async def test_the_queue_of_a_replica_in_error(world: World) -> None:
    made, chat, (_, a, b) = await busy(world, 2)

    def give_up(writer: Any) -> None:
        from quarterdeck.service.fleet.transitions import enter_error

        enter_error(writer, made, "a test")

    await world.fleet.of(made).close()
    await world.driver.stop(made)
    await world.context.event_log.write(give_up)
    assert ids(await reorder(world, made, chat, b, 0)) == [b, a]
    assert ids(await world.client.delete(path(made, chat))) == []


async def test_a_message_that_was_just_sent_is_delivered_when_it_is_moved(world: World) -> None:
    """Or the one behind it could start before it arrives."""
    made, chat, (running, a, b) = await busy(world, 2)
    world.fleet.of(made)._site.courier.paused = True
    c = (await world.send(made, "say c", chat_id=chat))["message_id"]
    assert ids(await reorder(world, made, chat, c, 0)) == [c, a, b]
    assert await finish(world, made, 4) == [running, c, a, b]


@pytest.mark.long
@pytest.mark.parametrize("victim", ["engine", "agent"])
async def test_changes_outlive_the_engine(world: World, victim: str) -> None:
    made, chat, (running, a, b, c) = await busy(world, 3)
    ids(await reorder(world, made, chat, c, 0))
    ids(await world.client.delete(path(made, chat, f"/{a}")))
    world.driver.signal(made, signal.SIGKILL) if victim == "engine" else kill_agent(world, made)
    assert await finish(world, made, 3) == [running, c, b]


def kill_agent(world: World, made: str) -> None:
    engine = world.driver.pid(made)
    children = Path(f"/proc/{engine}/task/{engine}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)


@pytest.mark.long
async def test_a_chat_is_deleted_while_it_works(world: World) -> None:
    made, chat, (running, *waiting) = await busy(world, 2)
    base = f"/v1/replica/{made}/chats"
    answer = await world.client.delete(f"{base}/{chat}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert (await world.client.get(base)).json() == {"chats": []}
    for method, rest in (
        ("PATCH", ""), ("DELETE", ""), ("GET", "/queue"), ("DELETE", "/queue"), ("PATCH", "/goal"),
        ("GET", "/slash-commands"), ("POST", "/interrupt"),
    ):  # fmt: skip
        body = {"display_name": "x", "objective": "x"}
        answer = await world.client.request(method, f"{base}/{chat}{rest}", json=body)
        assert answer.status_code == 404, (method, rest)
    log = await world.events(made)
    types = [one["type"] for one in log]
    assert types.count("chat.deleted") == 1
    of_chat = [n for n, one in enumerate(log) if chat in str(one["payload"])]
    assert types[of_chat[-1]] == "chat.deleted", "the chat spoke after its end"
    history = (await world.client.get(f"/v1/replica/{made}/history")).json()
    assert history["events"][-1]["payload"]["stopReason"] == "cancelled"
    assert sorted(history["canceledMessageIds"]) == sorted(waiting)
    query = f"/v1/replica/{made}/history?chat_id={chat}"
    assert (await world.client.get(query)).status_code == 404
    fresh = await world.send(made, "say again")
    assert fresh["chat_id"] != chat
    await world.done(made, fresh["message_id"])
    assert await ran(world, made) == [running, fresh["message_id"]]


@pytest.mark.long
async def test_a_chat_is_deleted_while_it_sleeps(world: World) -> None:
    made, chat, (running, *_) = await busy(world, 2)
    await world.post(made, "/sleep")
    answer = await world.client.delete(f"/v1/workspaces/{made}/chats/{chat}")
    assert answer.json() == {"success": True}
    assert (await world.events(made, "chat.deleted")) == [{"chatId": chat}]
    fresh = await world.send(made, "say again")
    await world.done(made, fresh["message_id"])
    assert await ran(world, made) == [running, fresh["message_id"]]
    assert len(await world.events(made, "chat.deleted")) == 1
