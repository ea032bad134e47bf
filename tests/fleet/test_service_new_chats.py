"""A chat that is made in any state is told once, with its request's id, and opened by the engine."""

from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.service import quotas
from tests.fleet.conftest import World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database


async def created(world: World, made: str) -> list[dict[str, Any]]:
    return await world.events(made, "chat.created")


async def make(world: World, made: str, request: str) -> str:
    body = {"provider": "gemini", "title": "New", "clientRequestId": request}
    answer = await world.post(made, "/chats", body)
    assert answer.status_code == 201, answer.text
    return answer.json()["chat"]["id"]


async def can_be_renamed(world: World, made: str, chat: str) -> None:
    """The engine knows it: only that renames."""
    path = f"/v1/replica/{made}/chats/{chat}"
    answer = await world.client.patch(path, json={"display_name": "Known"})
    assert (answer.status_code, answer.json().get("error")) == (200, None)


@pytest.mark.long
@pytest.mark.parametrize("state", ["active", "sleep", "archive"])
async def test_a_chat_is_told_at_once_in_every_state(world: World, state: str) -> None:
    made = await world.create()
    if state != "active":
        await world.post(made, f"/{state}")
    chat = await make(world, made, "mine")
    first, told = await created(world, made)
    assert (told["chat"]["id"], told["clientRequestId"]) == (chat, "mine")
    assert (told["chat"]["title"], told["chat"]["parentChatId"]) == ("New", None)
    assert "clientRequestId" not in first
    if state != "active":
        await world.post(made, "/wake")
        await world.reach(made, "active")
    await can_be_renamed(world, made, chat)
    assert len(await created(world, made)) == 2


async def test_a_chat_outlives_engine_and_service(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    chat = await make(world, made, "mine")
    await world.post(made, "/sleep")
    await world.stop()
    await world.start()
    await world.post(made, "/wake")
    await world.reach(made, "active")
    await can_be_renamed(world, made, chat)
    assert len(await created(world, made)) == 2


async def test_a_chat_made_while_hooks_run_is_known_when_they_end(scripted: World) -> None:
    world = scripted
    go = world.home.root / "go"
    hook = {"content": f"until test -e {go}; do sleep 0.02; done"}
    saved = await world.client.post("/v1/environments/global/start-hooks/save", json=hook)
    assert saved.status_code == 200, saved.text
    made = await world.create(wait=False)
    await eventually(lambda: world.events(made, "hooks.started"), "the hook")
    chat = await make(world, made, "early")
    go.touch()
    await world.reach(made, "active")
    await can_be_renamed(world, made, chat)
    assert len(await created(world, made)) == 2


@pytest.mark.long
async def test_a_chat_that_a_message_makes_is_told(world: World) -> None:
    made = await world.create()
    sent = await world.send(made, "hello", coding_agent="gemini")
    assert sent["chat_id"] in [one["chat"]["id"] for one in await created(world, made)]
    await world.done(made, sent["message_id"])
    assert len(await created(world, made)) == 2


async def test_a_refused_chat_is_not_told(world: World) -> None:
    made = await world.create()
    taken = (await world.get(made))["chats"][0]["id"]
    body = {"provider": "gemini", "id": taken, "clientRequestId": "again"}
    assert (await world.post(made, "/chats", body)).status_code == 409
    orphan = {"provider": "gemini", "parentChatId": str(uuid4())}
    assert (await world.post(made, "/chats", orphan)).status_code == 400
    assert len(await created(world, made)) == 1


async def test_a_replica_has_so_many_chats(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await world.create()
    monkeypatch.setattr(quotas, "CHATS_MOST", 1)
    answer = await world.post(made, "/chats", {"provider": "gemini"})
    assert (answer.status_code, answer.json()["code"]) == (429, "QUOTA_REACHED")
    sent = await world.send(made, "hello")
    await world.done(made, sent["message_id"])
    monkeypatch.setattr(quotas, "CHATS_MOST", 2)
    monkeypatch.setattr(quotas, "STORED_CHATS_MOST", 1)
    answer = await world.post(made, "/chats", {"provider": "gemini"})
    assert (answer.status_code, answer.json()["code"]) == (429, "QUOTA_REACHED")
