"""Messages: accepted by rule, delivered once and in order, never lost."""

import json
import signal
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.service.chats.messages import split_modes
from tests.conftest import DATABASES
from tests.fleet.conftest import World
from tests.support.waiting import eventually

# What is stored has tests of its own on both.
pytestmark = pytest.mark.one_database


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize(
    ("message", "text", "modes"),
    [
        ("/plan do it", "do it", {"plan_mode"}),
        ("  /goal\ndo it\n", "do it\n", {"goal_mode"}),
        ("/fast /plan x", "x", {"fast_mode", "plan_mode"}),
        ("/planning x", "/planning x", set()),
        ("do /plan", "do /plan", set()),
        ("/plan", "", {"plan_mode"}),
        ("  indented", "  indented", set()),
        ("", "", set()),
    ],
)
def test_mode_words(message: str, text: str, modes: set[str]) -> None:
    assert split_modes(message) == (text, dict.fromkeys(modes, True))


async def accepted(world: World, made: str) -> list[dict[str, Any]]:
    return [one["_message"] for one in await world.events(made, "chat.turn.accepted")]


async def test_what_the_engine_gets(world: World) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}
    made = await world.create(message="/plan first", model="m", images=[image])
    second = await world.send(made, "second", thinking_level="high", goal_mode=True)
    await world.done(made, second["message_id"])
    one, two = await accepted(world, made)
    assert (one["text"], one["planMode"], one["model"]) == ("first", True, "m")
    assert one["images"] == [image]
    assert (two["text"], two["planMode"], two["goalMode"]) == ("second", False, True)
    assert (two["thinkingLevel"], two["model"], two["usualModel"]) == ("high", None, "m")


@pytest.mark.long
async def test_refusals(world: World) -> None:
    made = await world.create()
    for body in (
        {},
        {"message": " \n"},
        {"message": "/plan"},
        {"message": "x", "canvasUploadIds": ["none"]},
        {"message": "x", "coding_agent": "nobody"},
        {"message": "x", "coding_agent": ""},
        {"message": "x", "model": ""},
        {"message": "x", "coding_agent": "codex"},
        {"message": "x", "chat_id": "1"},
        {"message": "x", "thinking_level": "much"},
        {"message": "half \ud800 a pair"},
    ):
        raw = json.dumps(body)
        answer = await world.client.post(f"/v1/replica/{made}/messages", content=raw)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST"), body
    answer = await world.post(made, "/messages", {"message": "x", "chat_id": str(uuid4())})
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    chat = (await world.get(made))["chats"][0]["id"]
    assert (await world.queue(made, chat))["queue"] == []


@pytest.mark.long
async def test_which_chat(world: World) -> None:
    made = await world.create()
    first = (await world.get(made))["chats"][0]["id"]
    assert (await world.send(made, "to the first"))["chat_id"] == first
    other = await world.send(made, "to another agent", coding_agent="gemini")
    assert other["chat_id"] != first
    again = await world.send(made, "to it again", coding_agent="gemini")
    assert again["chat_id"] == other["chat_id"]
    body = {"message": "x", "chat_id": first, "coding_agent": "gemini"}
    answer = await world.post(made, "/messages", body)
    assert (answer.status_code, answer.json()["details"]) == (400, "coding_agent")
    await world.done(made, again["message_id"])


async def test_a_chat_has_so_many_messages_that_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.service.quotas.MESSAGES_MOST", 2)
    made = await world.create()
    first, second = [await world.send(made, f"{n} wait") for n in range(2)]
    answer = await world.post(made, "/messages", {"message": "one more"})
    assert (answer.status_code, answer.json()["code"]) == (429, "QUOTA_REACHED")
    assert (await world.send(made, "elsewhere", coding_agent="gemini"))["status"] == "sent"
    world.driver.let_go(made)
    await world.done(made, first["message_id"])
    await world.done(made, second["message_id"])
    await world.send(made, "one more")


@pytest.mark.long
async def test_a_busy_chat_queues_in_order(world: World) -> None:
    made = await world.create()
    sent = [await world.send(made, f"{n} wait") for n in range(4)]
    assert (sent[0]["status"], sent[0]["position"]) == ("sent", None)
    # The first is not in the queue, whether or not its turn has begun by now.
    assert [(one["status"], one["position"]) for one in sent[1:]] == [
        ("queued", 1),
        ("queued", 2),
        ("queued", 3),
    ]
    chat = sent[0]["chat_id"]

    async def running() -> bool:
        queue = await world.queue(made, chat)
        return queue["processing"] and len(queue["queue"]) == 3

    await eventually(running)
    queue = await world.queue(made, chat)
    assert [one["message"] for one in queue["queue"]] == ["1 wait", "2 wait", "3 wait"]
    fifth = await world.send(made, "4 wait")
    assert (fifth["status"], fifth["position"]) == ("queued", 4)
    other = await world.send(made, "elsewhere", coding_agent="gemini")
    assert other["status"] == "sent"
    world.driver.let_go(made)
    await world.done(made, fifth["message_id"])
    started = [one["messageId"] for one in await world.events(made, "chat.turn.started")]
    order = [one["message_id"] for one in (*sent, fifth)]
    assert [one for one in started if one in order] == order
    assert (await world.queue(made, chat)) == {"chatId": chat, "processing": False, "queue": []}


@pytest.mark.long
async def test_a_message_to_a_sleeper_is_kept_and_delivered(world: World) -> None:
    made = await world.create()
    await world.post(made, "/sleep")
    sent = await world.send(made, "wake up")
    assert sent["status"] == "waking"
    assert len(await world.done(made, sent["message_id"])) == 1
    assert (await world.get(made))["last_activity_at"] is not None


@pytest.mark.long
async def test_a_refused_delivery_is_told_once_and_tried_again(world: World) -> None:
    made = await world.create()
    world.driver.fault(made, "refuse")
    sent = await world.send(made, "through a full disk")
    behind = await world.send(made, "behind it")

    async def tried() -> bool:
        courier = world.fleet.of(made)._site.courier
        return courier._refused.get(sent["message_id"], 0) > 2

    await eventually(tried)
    (told,) = await world.events(made, "error")
    assert told["code"] == "INTERNAL_ERROR"
    assert "The disk is full." in told["message"]
    assert told["details"]["messageId"] == sent["message_id"]
    world.driver.fault(made, "refuse", on=False)
    await world.done(made, behind["message_id"])
    assert [one["text"] for one in await accepted(world, made)] == [
        "through a full disk",
        "behind it",
    ]
    assert len(await world.events(made, "error")) == 1


@pytest.mark.long
async def test_dropped_links_lose_and_repeat_nothing(world: World) -> None:
    made = await world.create()
    world.driver.let_go(made)
    sent = []
    for n in range(30):
        sent.append(await world.send(made, f"message {n}"))
        if n % 5 == 0:
            world.driver.signal(made, signal.SIGUSR1)
    await world.done(made, sent[-1]["message_id"])
    assert [one["text"] for one in await accepted(world, made)] == [
        f"message {n}" for n in range(30)
    ]
    ends = await world.events(made, "chat.turn.completed")
    assert [one["messageId"] for one in ends] == [one["message_id"] for one in sent]


@pytest.mark.long
async def test_a_killed_engine_loses_and_repeats_nothing(world: World) -> None:
    made = await world.create()
    running = await world.send(made, "wait for it")

    async def started() -> bool:
        return bool(await world.events(made, "chat.turn.started"))

    await eventually(started)
    world.driver.signal(made, signal.SIGKILL)
    queued = await world.send(made, "next")
    assert len(await world.done(made, queued["message_id"])) == 1
    (end,) = await world.done(made, running["message_id"])
    assert end["isComplete"] is False
    assert len(await accepted(world, made)) == 2


@pytest.mark.long
async def test_many_chats_at_once(world: World) -> None:
    made = await world.create()
    chats = [
        (await world.post(made, "/chats", {"provider": "builtin"})).json()["chat"]["id"]
        for _ in range(5)
    ]
    sent = [
        (await world.send(made, f"{n}", chat_id=chat))["message_id"]
        for n in range(4)
        for chat in chats
    ]
    for one in sent:
        assert len(await world.done(made, one)) == 1
    for chat in chats:
        texts = [one["text"] for one in await accepted(world, made) if one["chatId"] == chat]
        assert texts == ["0", "1", "2", "3"]
