"""Permission mode, model and thinking level of a chat, with a real engine and an agent with a script."""

import signal
from typing import Any

import pytest

from tests.fleet.conftest import World
from tests.support.waiting import eventually

ASK, EDITS, PLAN = ({"id": id, "name": name} for id, name in (
    ("ask", "Ask first"), ("edits", "Accept edits"), ("plan", "Plan"),
))  # fmt: skip


async def chat_of(world: World, made: str) -> dict[str, Any]:
    return (await world.get(made))["chats"][0]


async def settings(world: World, made: str, chat: str) -> dict[str, Any]:
    answer = await world.client.get(f"/v1/replica/{made}/chats/{chat}/settings")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def change(world: World, made: str, chat: str, **body: Any) -> Any:
    return await world.client.patch(f"/v1/replica/{made}/chats/{chat}/settings", json=body)


async def turn(world: World, made: str, text: str, **body: Any) -> dict[str, Any]:
    """Send a message and wait until its turn is over; return the chat."""
    sent = await world.send(made, text, **body)
    await world.done(made, sent["message_id"])

    async def rested() -> dict[str, Any] | None:
        chat = await chat_of(world, made)
        return None if chat["processing"] else chat

    return await eventually(rested)


async def said(world: World, made: str) -> str:
    """The newest line that the agent said of its session."""
    deltas = [event["event"] for event in await world.events(made, "chat.turn.delta")]
    texts = [delta["payload"].get("content", {}).get("text", "") for delta in deltas]
    return [text for text in texts if text.startswith("settings")][-1]


async def test_settings_are_announced_changed_and_kept(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    chat = (await chat_of(world, made))["id"]
    nothing = {"permission_mode": None, "model": None, "thinking_level": None}
    assert await settings(world, made, chat) == nothing
    known = await turn(world, made, "settings")
    assert await said(world, made) == "settings ask low"
    assert (known["permission_mode"], known["thinking_level"]) == (
        ASK,
        {"id": "low", "name": "Low"},
    )
    assert known["model"] == {"id": "a", "name": "A"}
    offered = await settings(world, made, chat)
    modes = offered["permission_mode"]
    assert [choice["id"] for choice in modes["choices"]] == ["ask", "edits"]  # a message plans
    assert modes["choices"][0]["description"] == "Asks before it acts."
    levels = offered["thinking_level"]["choices"]
    assert [choice["id"] for choice in levels] == ["low", "high", "ultra"]
    for event in await world.events(made, "chat.updated"):
        assert "settings" not in event

    answer = await change(world, made, chat, permission_mode="edits", thinking_level="ultra")
    assert answer.status_code == 200
    assert answer.json()["chat"]["permission_mode"] == EDITS
    assert answer.json()["chat"]["thinking_level"] == {"id": "ultra", "name": "Ultra"}
    await turn(world, made, "settings")
    assert await said(world, made) == "settings edits ultra"
    world.driver.signal(made, signal.SIGKILL)
    await turn(world, made, "settings")
    assert await said(world, made) == "settings edits ultra"
    await world.post(made, "/sleep")
    await change(world, made, chat, thinking_level="high")
    answer = await change(world, made, chat, permission_mode="ask")
    assert (answer.status_code, answer.json()["chat"]["permission_mode"]) == (200, ASK)
    assert (await world.events(made, "chat.updated"))[-1]["chat"]["permissionMode"] == ASK
    assert (await settings(world, made, chat))["permission_mode"]["current"] == ASK
    await world.post(made, "/wake")

    async def given() -> bool:
        newest = (await world.events(made, "chat.updated"))[-1]["chat"]
        # The agent has not started yet, so the service knows the names.
        return newest["permissionMode"] == ASK and newest["thinkingLevel"]["name"] == "High"

    await eventually(given)
    await turn(world, made, "settings")
    assert await said(world, made) == "settings ask high"
    world.driver.signal(made, signal.SIGKILL)
    await turn(world, made, "settings")
    assert await said(world, made) == "settings ask high"

    for wrong in (
        {},
        {"permission_mode": "plan"},
        {"permission_mode": "x"},
        {"thinking_level": "x"},
    ):
        assert (await change(world, made, chat, **wrong)).status_code == 400, wrong
    body = {"message": "hello", "chat_id": chat, "thinking_level": "x"}
    refused = await world.client.post(f"/v1/replica/{made}/messages", json=body)
    assert refused.status_code == 400 and "ultra" in refused.json()["details"]
    known = await turn(world, made, "settings", thinking_level="high")
    assert await said(world, made) == "settings ask high"
    assert known["thinking_level"]["id"] == "high"


@pytest.mark.long
async def test_plan_mode_is_a_message_s_and_the_permission_mode_the_chat_s(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    chat = (await chat_of(world, made))["id"]
    await turn(world, made, "hello")
    known = await turn(world, made, "settings", plan_mode=True)
    assert await said(world, made) == "settings plan low"
    shown = [e["chat"]["permissionMode"] for e in await world.events(made, "chat.updated")]
    assert PLAN in shown and known["permission_mode"] == ASK
    # Changed while the session is still in plan mode: it counts from the next message on.
    assert (await change(world, made, chat, permission_mode="edits")).status_code == 200
    await turn(world, made, "settings")
    assert await said(world, made) == "settings edits low"
    await change(world, made, chat, permission_mode="ask")
    known = await turn(world, made, "leave", plan_mode=True)
    assert known["permission_mode"] == EDITS  # the agent changed it, and it is kept
    await turn(world, made, "settings")
    assert await said(world, made) == "settings edits low"


@pytest.mark.long
async def test_a_new_chat_offers_what_its_agent_announced_elsewhere(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    await turn(world, made, "hello")
    created = await world.client.post(f"/v1/replica/{made}/chats", json={"provider": "builtin"})
    chat = created.json()["chat"]["id"]
    offered = await settings(world, made, chat)
    assert offered["permission_mode"]["current"] is None
    assert [choice["id"] for choice in offered["permission_mode"]["choices"]] == ["ask", "edits"]
    answer = await change(world, made, chat, permission_mode="edits")
    assert answer.json()["chat"]["permission_mode"]["id"] == "edits"
    sent = await world.send(made, "settings", chat_id=chat)
    await world.done(made, sent["message_id"])
    assert await said(world, made) == "settings edits low"
