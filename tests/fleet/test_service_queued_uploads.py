"""A queued upload is kept 24 hours, by the service's clock."""

import asyncio
from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.chats.delivery import hand_over
from quarterdeck.service.chats.rows import Undelivered
from quarterdeck.service.replicas import canvas as canvas_module
from quarterdeck.wire.engine import CanvasWritten, DeliverMessage, OpenChat, WriteCanvas
from tests.fleet.conftest import Time, World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database


@pytest.fixture
async def time(scripted: World) -> Time:
    return Time(scripted)


async def asleep(world: World) -> str:
    made = await world.create()
    assert (await world.post(made, "/sleep")).status_code == 200
    return made


async def queue(world: World, made: str, name: str) -> str:
    files = {"file": (name, b"# plan"), "filename": (None, name)}
    answer = await world.client.post(f"/v1/workspaces/{made}/canvas", files=files)
    assert answer.status_code == 202, answer.text
    return answer.json()["uploadId"]


async def canvas(world: World, made: str) -> list[str]:
    answer = await world.client.get(f"/v1/replica/{made}/canvas")
    assert answer.status_code == 200, answer.text
    return sorted(one["filename"] for one in answer.json()["items"])


async def test_an_upload_is_there_for_a_message_within_a_day(scripted: World, time: Time) -> None:
    made = await asleep(scripted)
    upload = await queue(scripted, made, "plan.md")
    time.move(hours=23, minutes=59)
    sent = await scripted.send(made, "look", canvasUploadIds=[upload])
    await scripted.done(made, sent["message_id"])
    assert await canvas(scripted, made) == ["plan.md"]


async def test_an_upload_is_forgotten_after_a_day(scripted: World, time: Time) -> None:
    made = await asleep(scripted)
    upload = await queue(scripted, made, "plan.md")
    time.move(hours=24, minutes=1)
    body = {"message": "look", "canvasUploadIds": [upload]}
    answer = await scripted.post(made, "/messages", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert upload in answer.json()["details"]
    assert (await scripted.get(made))["status"] == "sleeping"


async def test_a_late_wake_writes_only_what_is_younger_than_a_day(
    scripted: World, time: Time
) -> None:
    made = await asleep(scripted)
    await queue(scripted, made, "old.md")
    time.move(hours=2)
    await queue(scripted, made, "young.md")
    time.move(hours=23)
    await scripted.post(made, "/wake")
    await scripted.reach(made, "active")

    async def written() -> bool:
        return "young.md" in await canvas(scripted, made)

    await eventually(written, "the upload")
    assert await canvas(scripted, made) == ["young.md"]


async def test_waits_for_the_database_are_not_the_engines(
    scripted: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await asleep(scripted)
    await queue(scripted, made, "plan.md")
    chat = (await scripted.client.get(f"/v1/replica/{made}/chats")).json()["chats"][0]["id"]
    context, limit = scripted.context, 0.01
    read, write = context.database.read, context.database.write

    async def slow_read(fn: Callable[[Connection], Any]) -> Any:
        await asyncio.sleep(2 * limit)
        return await read(fn)

    async def slow_write(fn: Callable[[Connection], Any]) -> Any:
        await asyncio.sleep(2 * limit)
        return await write(fn)

    calls: list[str] = []

    class Calls:
        async def canvas_put(self, canvas: WriteCanvas) -> CanvasWritten:
            calls.append(canvas.filename)
            return CanvasWritten(filename=canvas.filename)

        async def chat_open(self, chat: OpenChat) -> None:
            calls.append(str(chat.chat_id))

        async def chat_send(self, message: DeliverMessage) -> None:
            calls.append(message.text)

    monkeypatch.setattr(context.database, "read", slow_read)
    monkeypatch.setattr(context.database, "write", slow_write)
    message = Undelivered(str(uuid4()), chat, 0, "look", "{}")
    link = cast("EngineLink", Calls())
    await hand_over(context.database, link, made, message, context.clock, limit)
    assert calls == ["plan.md", chat, "look"]


async def test_an_upload_that_is_refused_holds_up_its_own_message_only(scripted: World) -> None:
    made = await scripted.create()
    made_place = "mkdir -p ~/.quarterdeck && rm -rf ~/.quarterdeck/canvas"
    await scripted.post(made, "/exec", {"command": f"{made_place} && touch ~/.quarterdeck/canvas"})
    assert (await scripted.post(made, "/sleep")).status_code == 200
    upload = await queue(scripted, made, "plan.md")
    sent = await scripted.send(made, "look")
    await scripted.done(made, sent["message_id"])
    waits = await scripted.send(made, "look again", canvasUploadIds=[upload])
    later = await scripted.send(made, "and now")
    repaired = await scripted.post(made, "/exec", {"command": "rm ~/.quarterdeck/canvas"})
    assert repaired.status_code == 200
    for message in (waits, later):
        await scripted.done(made, message["message_id"])
    assert await canvas(scripted, made) == ["plan.md"]


@pytest.mark.parametrize(("limit", "value"), [("WAITING_UPLOADS", 2), ("WAITING_BYTES", 17)])
async def test_uploads_that_wait_are_limited(
    scripted: World, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(canvas_module, limit, value)
    made = await asleep(scripted)
    for name in ("a.md", "b.md"):
        await queue(scripted, made, name)
    files = {"file": ("c.md", b"# plan"), "filename": (None, "c.md")}
    answer = await scripted.client.post(f"/v1/workspaces/{made}/canvas", files=files)
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert "Wake it" in answer.json()["error"]
    await queue(scripted, await asleep(scripted), "c.md")  # those of others are not counted
    await scripted.post(made, "/wake")
    await scripted.reach(made, "active")

    async def written() -> bool:
        return await canvas(scripted, made) == ["a.md", "b.md"]

    await eventually(written, "the files")
    answer = await scripted.client.post(f"/v1/workspaces/{made}/canvas", files=files)
    assert answer.status_code == 200
