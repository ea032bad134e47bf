"""Goals, commands, models, images and uploads, with a real engine and an agent with a script."""

import base64
import json
import signal
from typing import Any
from uuid import uuid4

import pytest

from quarterdeck.wire.agents import AgentModel
from tests.fleet.conftest import World
from tests.support.waiting import eventually

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


async def chat_of(world: World, made: str) -> dict[str, Any]:
    return (await world.get(made))["chats"][0]


async def goal_status(world: World, made: str, status: str) -> dict[str, Any]:
    async def there() -> dict[str, Any] | None:
        chat = await chat_of(world, made)
        reached = chat["goal"] and chat["goal"]["status"] == status and not chat["processing"]
        return chat["goal"] if reached else None

    return await eventually(there, f"a goal that is {status}")


async def patch(world: World, made: str, chat: str, **body: Any) -> Any:
    return await world.client.patch(f"/v1/replica/{made}/chats/{chat}/goal", json=body)


async def test_a_goal_by_message_and_by_hand(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    sent = await world.send(made, "/goal goal 3")
    chat = sent["chat_id"]
    goal = await goal_status(world, made, "complete")
    assert goal == {
        "objective": "goal 3", "status": "complete", "token_budget": None,
        "tokens_used": 30, "time_used_seconds": goal["time_used_seconds"],
    }  # fmt: skip
    answer = await patch(world, made, chat, objective="goal 99", token_budget=20)
    assert answer.status_code == 200
    assert answer.json()["goal"]["status"] == "active"
    assert answer.json()["goal"]["tokens_used"] == 0
    assert (await goal_status(world, made, "budget_limited"))["tokens_used"] == 20
    answer = await patch(world, made, chat, status="paused")
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    for wrong in (
        {}, {"status": "complete"}, {"token_budget": 0}, {"token_budget": "5"}, {"objective": " "},
        {"objective": ""}, {"status": None}, {"token_budget": 10**12 + 1},
    ):  # fmt: skip
        assert (await patch(world, made, chat, **wrong)).status_code == 400, wrong
    assert (await patch(world, made, chat, token_budget=10**12)).status_code == 200


@pytest.mark.long
async def test_a_goal_is_removed(scripted: World) -> None:
    """Whether it is worked towards or rests; a turn that runs goes on, and is the last."""
    world, made = scripted, await scripted.create()
    chat = (await chat_of(world, made))["id"]
    path = f"/v1/replica/{made}/chats/{chat}/goal"
    for _ in range(2):
        answer = await world.client.delete(path)
        assert (answer.status_code, answer.json()) == (200, {"goal": None})
    await patch(world, made, chat, objective="goal 1000000")

    async def begun() -> bool:
        return len(await world.events(made, "chat.turn.completed")) >= 2

    await eventually(begun)
    assert (await world.client.delete(path)).status_code == 200
    assert (await chat_of(world, made))["goal"] is None

    async def at_rest() -> bool:
        return not (await chat_of(world, made))["processing"]

    await eventually(at_rest)
    answer = await patch(world, made, chat, status="active")
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert (await chat_of(world, made))["goal"] is None
    world.driver.signal(made, signal.SIGKILL)
    sent = await world.send(made, "hello")
    await world.done(made, sent["message_id"])
    assert (await chat_of(world, made))["goal"] is None
    for wrong, status in (("x", 400), (str(uuid4()), 404)):
        answer = await world.client.delete(f"/v1/replica/{made}/chats/{wrong}/goal")
        assert answer.status_code == status
    await world.post(made, "/sleep")
    answer = await world.client.delete(path)
    assert (answer.status_code, answer.json()["code"]) == (409, "WORKSPACE_NOT_ACTIVE")


async def test_an_agent_without_goals(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    sent = await world.send(made, "hello", coding_agent="gemini", goal_mode=True)
    await world.done(made, sent["message_id"])
    for body in ({"objective": "goal 1"}, {"status": "paused"}, {"token_budget": 5}):
        answer = await patch(world, made, sent["chat_id"], **body)
        assert (answer.status_code, answer.json()) == (200, {"goal": None}), body
    (chat,) = [one for one in (await world.get(made))["chats"] if one["id"] == sent["chat_id"]]
    assert (chat["provider"], chat["goal"], chat["processing"]) == ("gemini", None, False)
    assert len(await world.events(made, "chat.turn.started")) == 1


async def test_a_goal_of_a_sleeper_is_not_changed(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    chat = (await chat_of(world, made))["id"]
    assert (await patch(world, made, chat, status="active")).status_code == 409
    await world.post(made, "/sleep")
    answer = await patch(world, made, chat, objective="x")
    assert (answer.status_code, answer.json()["code"]) == (409, "WORKSPACE_NOT_ACTIVE")


async def test_interrupting_pauses_the_goal(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    sent = await world.send(made, "wait", goal_mode=True)

    async def running() -> bool:
        return bool(await world.events(made, "chat.turn.started"))

    await eventually(running)
    answer = await world.post(made, f"/chats/{sent['chat_id']}/interrupt")
    assert answer.json() == {"interrupted": True, "queue": []}
    await goal_status(world, made, "paused")


@pytest.mark.long
@pytest.mark.parametrize("victim", ["engine", "service", "sleep"])
async def test_a_goal_goes_on_whatever_ends(scripted: World, victim: str) -> None:
    world, made = scripted, await scripted.create(message="goal 30", goal_mode=True)

    async def begun() -> bool:
        return len(await world.events(made, "chat.turn.completed")) >= 2

    await eventually(begun)
    match victim:
        case "engine":
            world.driver.signal(made, signal.SIGKILL)
        case "service":
            await world.stop()
            await world.start()
        case _:
            assert (await world.post(made, "/sleep")).status_code == 200
            await world.post(made, "/wake")
    await goal_status(world, made, "complete")
    started = [one["messageId"] for one in await world.events(made, "chat.turn.started")]
    assert len(started) == len(set(started)) >= 30


async def test_slash_commands(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    chat = (await chat_of(world, made))["id"]
    path = f"/v1/replica/{made}/chats/{chat}/slash-commands"
    ours = (await world.client.get(path)).json()["commands"]
    assert [one["command"] for one in ours] == ["/plan", "/goal", "/fast"]
    assert ours[2]["providers"] == ["builtin", "gemini"]
    sent = await world.send(made, "hello")
    await world.done(made, sent["message_id"])
    await world.post(made, "/sleep")
    commands = (await world.client.get(path)).json()["commands"]
    assert commands[:3] == ours
    assert commands[3:] == [
        {
            "command": "/review", "description": "Review the changes.",
            "argumentHint": "what", "providers": ["builtin"],
        }
    ]  # fmt: skip


def image(data: bytes, media_type: str = "image/png") -> dict[str, Any]:
    text = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": media_type, "data": text}
    return {"type": "image", "source": source}


async def test_images_reach_the_agent(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    address = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    sent = await world.send(made, "look", images=[image(PNG), address])
    await world.done(made, sent["message_id"])
    events = (await world.client.get(f"/v1/replica/{made}/history")).json()["events"]
    spoken = [
        one["payload"]["content"]["text"]
        for one in events
        if one["payload"].get("sessionUpdate") == "agent_message_chunk"
    ]
    text, shown, link = json.loads(spoken[0])
    assert text["text"] == "look"
    assert (shown["mimeType"], base64.b64decode(shown["data"])) == ("image/png", PNG)
    assert link["uri"] == "https://example.com/a.png"


async def test_uploads_are_written_before_the_message(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    await world.post(made, "/sleep")
    files = {"file": ("plan.md", b"# plan"), "filename": (None, "plan.md")}
    upload = await world.client.post(f"/v1/workspaces/{made}/canvas", files=files)
    assert upload.status_code == 202, upload.text
    ids = [upload.json()["uploadId"]]
    sent = await world.send(made, "", canvasUploadIds=ids)
    assert sent["status"] == "waking"
    await world.done(made, sent["message_id"])
    events = (await world.client.get(f"/v1/replica/{made}/history")).json()["events"]
    said = next(one for one in events if one["type"] == "user-message")
    assert said["payload"]["uploads"] == [upload.json()["filePath"]]
    item = await world.client.get(f"/v1/replica/{made}/canvas/plan.md")
    assert item.json()["content"] == "# plan"
    spoken = json.dumps([one for one in events if "agent_message" in json.dumps(one)])
    assert upload.json()["filePath"] in spoken


async def models_of(world: World, agent: str) -> dict[str, Any]:
    answer = await world.client.get(f"/v1/agents/{agent}/models")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.long
async def test_the_models_that_an_agent_announces_are_offered(scripted: World) -> None:
    world, made = scripted, await scripted.create()
    model = AgentModel(id="usual", display_name="Usual")
    plain = world.agents[1].model_copy(update={"models": [model], "default_model": "usual"})
    world.agents = [world.agents[0], plain]
    usual = [{"id": "usual", "displayName": "Usual"}]
    assert (await models_of(world, "gemini"))["models"] == usual
    sent = await world.send(made, "hello", coding_agent="gemini")
    await world.done(made, sent["message_id"])
    told = await models_of(world, "gemini")
    a, b, c = ({"id": id, "displayName": id.upper()} for id in "abc")
    assert told == {"models": [a, b], "defaultModel": "a", "announced": True}
    # Of another agent nothing was announced, and what is said again is what counts.
    assert await models_of(world, "builtin") == {
        "models": [],
        "defaultModel": None,
        "announced": False,
    }
    sent = await world.send(made, "models", chat_id=sent["chat_id"])
    await world.done(made, sent["message_id"])
    assert (await models_of(world, "gemini"))["models"] == [b, c]
    changed = await world.events(made, "chat.updated")
    assert changed and not any("models" in payload for payload in changed)


async def test_a_goal_word_of_an_agent_without_goals(scripted: World) -> None:
    """Refused, unless the agent lists a command of that name: then it gets the word."""
    world = scripted
    world.agents = [one.model_copy(update={"supports_goal": False}) for one in world.agents]
    body = {"name": "none", "environment_id": world.environment, "message": "/goal x"}
    answer = await world.client.post("/v1/replica", json=body)
    assert (answer.status_code, answer.json()["details"]) == (400, "message: /goal")
    made = await world.create()
    answer = await world.post(made, "/messages", {"message": "/goal x"})
    assert (answer.status_code, "has no goals" in answer.text) == (400, True)
    first = await world.send(made, "hello")
    await world.done(made, first["message_id"])
    second = await world.send(made, "/goal all is well")
    await world.done(made, second["message_id"])
    chat = await chat_of(world, made)  # the agent says the text that it was given
    assert '"/goal all is well"' in chat["last_message_text"] and chat["goal"] is None
