"""Images beside a message, over HTTP: which are taken, that they arrive, and that none is lost."""

import base64
import json
from typing import Any

import pytest

from tests.fleet.conftest import World
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x00\x00\x00\x00WEBP",
}


def image(media_type: str, data: bytes | None = None) -> dict[str, Any]:
    content = HEADS[media_type] + bytes(8) if data is None else data
    text = base64.b64encode(content).decode()
    source = {"type": "base64", "media_type": media_type, "data": text}
    return {"type": "image", "source": source}


def address(url: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url}}


EVERY = [*(image(kind) for kind in HEADS), address("https://example.com/a.webp")]

WRONG = {
    "another kind": image("image/bmp", b"BM"),
    "a vector image": image("image/svg+xml", b"<svg/>"),
    "not what it says": image("image/png", HEADS["image/gif"]),
    "nothing": image("image/png", b""),
    "no base64": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "%"},
    },
    "no kind": {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo="}},
    "no source": {"type": "image"},
    "a file": address("file:///etc/passwd"),
    "no address": address("picture.png"),
    "another source": {"type": "image", "source": {"type": "path", "path": "a.png"}},
    "another thing": {"type": "video", "source": {"type": "url", "url": "https://a/b"}},
}


async def heard(world: World, made: str) -> list[dict[str, Any]]:
    """The blocks that the agent was given, as it repeats them."""

    async def spoken() -> list[str]:
        events = (await world.client.get(f"/v1/replica/{made}/history")).json()["events"]
        return [
            one["payload"]["content"]["text"]
            for one in events
            if one["payload"].get("sessionUpdate") == "agent_message_chunk"
        ]

    return json.loads((await eventually(spoken, "the agent's answer"))[0])


def check(blocks: list[dict[str, Any]]) -> None:
    text, *shown, link = blocks
    assert text["text"] == "look"
    assert [one["mimeType"] for one in shown] == list(HEADS)
    assert [base64.b64decode(one["data"])[:12] for one in shown] == [
        (head + bytes(8))[:12] for head in HEADS.values()
    ]
    assert link["uri"] == "https://example.com/a.webp"


async def test_every_kind_of_image_reaches_the_agent_with_a_message(scripted: World) -> None:
    made = await scripted.create()
    await scripted.send(made, "look", images=EVERY)
    check(await heard(scripted, made))


async def test_images_of_create_go_with_its_message(scripted: World) -> None:
    made = await scripted.create(message="look", images=EVERY)
    check(await heard(scripted, made))


@pytest.mark.parametrize("message", [None, "", "  \n", "/plan"])
async def test_images_of_create_without_a_message_are_refused(
    world: World, message: str | None
) -> None:
    body = {"name": "lost", "environment_id": world.environment, "message": message}
    answer = await world.client.post("/v1/replica", json={**body, "images": EVERY[:1]})
    assert (answer.status_code, answer.json().get("code")) == (400, "INVALID_REQUEST")
    assert "images" in answer.json()["details"]
    assert (await world.client.get("/v1/replica")).json()["total"] == 0
    assert (await world.client.post("/v1/replica", json={**body, "images": []})).status_code == 201


@pytest.mark.long
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_other_images_are_refused(world: World, wrong: dict[str, Any]) -> None:
    made = await world.create()
    images = [EVERY[0], wrong]
    create = {"name": "n", "environment_id": world.environment, "message": "look"}
    for path, body in (
        (f"/v1/replica/{made}/messages", {"message": "look"}),
        ("/v1/replica", create),
    ):
        answer = await world.client.post(path, json={**body, "images": images})
        assert (answer.status_code, answer.json().get("code")) == (400, "INVALID_REQUEST")
        assert "images.1" in answer.json()["details"]
    assert await world.events(made, "chat.turn.accepted") == []
