"""After the success of a mutation every later read shows it, however late the journal is stored."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from quarterdeck.service import relay
from quarterdeck.service.event_log import EventLog
from quarterdeck.wire.engine import JournalEntry
from tests.fleet.conftest import World
from tests.fleet.test_service_questions import asking
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

LATE = 0.2
"""Seconds that an entry of the journal is on its way."""


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow database: what an engine has journaled is stored late."""
    store = relay._store

    async def store_late(
        event_log: EventLog, workspace_id: str, entries: Sequence[JournalEntry], earlier: int
    ) -> None:
        await asyncio.sleep(LATE)
        await store(event_log, workspace_id, entries, earlier)

    monkeypatch.setattr(relay, "_store", store_late)


async def chat_of(world: World, made: str) -> dict[str, Any]:
    return (await world.get(made))["chats"][0]


@pytest.mark.usefixtures("late")
async def test_a_chat_is_renamed(scripted: World) -> None:
    made = await scripted.create()
    chat = (await chat_of(scripted, made))["id"]
    path = f"/v1/replica/{made}/chats/{chat}"
    answer = await scripted.client.patch(path, json={"display_name": "Named"})
    assert answer.status_code == 200, answer.text
    assert await chat_of(scripted, made) == answer.json()["chat"]
    assert answer.json()["chat"]["title"] == "Named"
    (event, *_) = reversed(await scripted.events(made, "chat.updated"))
    assert event["chat"]["title"] == "Named"


@pytest.mark.long
@pytest.mark.usefixtures("late")
async def test_a_question_is_answered(scripted: World) -> None:
    made, chat, question = await asking(scripted)
    body = {"requestId": question, "optionId": "yes"}
    answer = await scripted.post(made, f"/chats/{chat}/respond", body)
    assert answer.status_code == 200, answer.text
    assert not (await chat_of(scripted, made))["awaiting_input"]


@pytest.mark.usefixtures("late")
async def test_a_turn_is_interrupted(scripted: World) -> None:
    made = await scripted.create(message="wait", goal_mode=True)
    chat = (await chat_of(scripted, made))["id"]
    await eventually(lambda: scripted.events(made, "chat.turn.started"), "the turn")
    answer = await scripted.post(made, f"/chats/{chat}/interrupt")
    assert answer.json() == {"interrupted": True, "queue": []}
    now = await chat_of(scripted, made)
    assert not now["processing"]
    assert now["goal"]["status"] == "paused"


@pytest.mark.long
@pytest.mark.usefixtures("late")
async def test_other_mutations_of_a_replica(scripted: World) -> None:
    world, made = scripted, await scripted.create(message="wait")
    chat = (await chat_of(world, made))["id"]
    await eventually(lambda: world.events(made, "chat.turn.started"), "the turn")
    new = (await world.post(made, "/chats", {"provider": "builtin"})).json()["chat"]
    assert new in (await world.get(made))["chats"]
    queued = await world.send(made, "next", chat_id=chat)
    waiting = [one["id"] for one in (await world.queue(made, chat))["queue"]]
    assert waiting == [queued["message_id"]]
    path = f"/v1/replica/{made}/chats/{chat}"
    await world.client.delete(f"{path}/queue/{queued['message_id']}")
    assert (await world.queue(made, chat))["queue"] == []
    goal = (await world.client.patch(f"{path}/goal", json={"objective": "goal 9"})).json()["goal"]
    assert (await chat_of(world, made))["goal"] == goal
    upload = {"files": {"file": b"x"}, "data": {"filename": "plan.md"}}
    await world.client.post(f"/v1/workspaces/{made}/canvas", **upload)
    items = (await world.client.get(f"/v1/replica/{made}/canvas")).json()["items"]
    assert [one["filename"] for one in items] == ["plan.md"]
    assert (await world.client.delete(path)).status_code == 200
    assert [one["id"] for one in (await world.get(made))["chats"]] == [new["id"]]
    assert (await world.post(made, "/sleep")).status_code == 200
    assert (await world.get(made))["status"] == "sleeping"
    assert (await world.states(made))[-1] == "sleeping"
