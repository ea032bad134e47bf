"""A queued upload is kept 24 hours, by the service's clock."""

import pytest

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
