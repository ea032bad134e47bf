"""Idleness, policies and archiving, with time moved by hand."""

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service import event_rows
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.fleet import transitions
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import change_workspace, find_workspace
from tests.fleet.conftest import Time, World
from tests.support.waiting import eventually


@pytest.fixture
async def time(world: World) -> Time:
    return Time(world)


async def look(world: World) -> None:
    """One look of the upkeep, to its end."""
    await world.fleet.upkeep.round()
    await world.fleet.upkeep.settled()


async def status(world: World, made: str) -> str | None:
    answer = await world.client.get(f"/v1/replica/{made}")
    return answer.json()["replica"]["status"] if answer.status_code == 200 else None


async def felt(world: World, made: str) -> None:
    """The engine was asked for its report since now."""
    supervisor = world.fleet.of(made)
    row = await world.context.database.read(lambda c: find_workspace(c, made))
    supervisor.pulse.report = await supervisor.call(row, lambda link: link.status())


def report(world: World, made: str, **values: Any) -> None:
    (world.driver.place(made) / "report.json").write_text(json.dumps(values))


async def idle(world: World, **body: Any) -> str:
    made = await world.create(**body)
    await felt(world, made)
    return made


async def ended(world: World, made: str) -> None:
    """A turn has ended, and its last entry is stored: later it would count as activity then."""

    async def there() -> bool:
        types = [one["type"] for one in await world.events(made)]
        _, completed, after = "\n".join(types).rpartition("chat.turn.completed")
        return bool(completed) and "chat.updated" in after

    await eventually(there, "the end of a turn")


# Idleness


@pytest.mark.parametrize("minutes", [3, 60, 1440])
async def test_sleeps_after_its_auto_stop_time(world: World, time: Time, minutes: int) -> None:
    made = await idle(world, config={"auto_stop_minutes": minutes})
    time.move(minutes=minutes, seconds=-20)
    await look(world)
    assert await status(world, made) == "active"
    time.move(seconds=40)
    await look(world)
    assert await status(world, made) == "sleeping"
    assert not world.driver.running(made)


async def test_sleeps_after_an_hour_unless_told_otherwise(world: World, time: Time) -> None:
    made = await idle(world)
    time.move(minutes=59, seconds=30)
    await look(world)
    assert await status(world, made) == "active"
    time.move(minutes=1)
    await look(world)
    assert await status(world, made) == "sleeping"


@pytest.mark.parametrize("wrong", [2, 1441, 0, -5, 3.5, "60", True, {}])
async def test_auto_stop_times_that_are_refused(world: World, wrong: Any) -> None:
    body = {"name": "x", "environment_id": world.environment}
    answer = await world.client.post(
        "/v1/replica", json={**body, "config": {"auto_stop_minutes": wrong}}
    )
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_REQUEST"
    assert "config.auto_stop_minutes" in answer.json()["details"]


async def test_other_settings_are_kept(world: World) -> None:
    made = await world.create(config={"auto_stop_minutes": 5, "later": {"a": [1]}})
    row = await world.context.database.read(lambda c: find_workspace(c, made))
    assert row is not None and row.auto_stop_minutes == 5
    assert json.loads(row.config_json or "") == {"auto_stop_minutes": 5, "later": {"a": [1]}}


@pytest.mark.long
@pytest.mark.parametrize(
    "busy",
    [{"chatsProcessing": 1}, {"terminalsAttached": 1}, {"hooksRunning": True}],
)
async def test_what_goes_on_keeps_it_awake(world: World, time: Time, busy: dict[str, Any]) -> None:
    made = await idle(world)
    report(world, made, **busy)
    time.move(days=2)
    await look(world)  # what was heard last says that nothing goes on; the engine is asked again
    assert await status(world, made) == "active"
    await felt(world, made)
    await look(world)
    assert await status(world, made) == "active"
    report(world, made)
    await felt(world, made)
    await look(world)
    assert await status(world, made) == "sleeping"


async def test_use_counts_from_its_end(world: World, time: Time) -> None:
    made = await idle(world)
    time.move(hours=3)
    report(world, made, idleSeconds=59 * 60)
    await look(world)
    assert await status(world, made) == "active"
    report(world, made, idleSeconds=61 * 60)
    await look(world)
    assert await status(world, made) == "sleeping"


@pytest.mark.long
async def test_an_engine_of_an_earlier_version_tells_a_moment(world: World, time: Time) -> None:
    made = await idle(world)
    time.move(hours=3)
    ended = (time() - timedelta(minutes=59)).isoformat()
    report(world, made, idleSeconds=None, lastActivityAt=ended)
    await look(world)
    assert await status(world, made) == "active"
    time.move(minutes=2)
    await look(world)
    assert await status(world, made) == "sleeping"


@pytest.mark.long
@pytest.mark.parametrize("minutes", [-90, 90])
async def test_an_engine_whose_clock_is_wrong_sleeps_when_it_is_time(
    world: World, time: Time, minutes: int
) -> None:
    world.driver.skew = timedelta(minutes=minutes)
    made = await idle(world, message="hello")
    await ended(world, made)
    at = datetime.fromisoformat((await world.get(made))["last_activity_at"])
    assert abs(at - time()) < timedelta(minutes=30)
    time.move(minutes=59)
    await look(world)
    assert await status(world, made) == "active"
    time.move(minutes=2)
    await look(world)
    assert await status(world, made) == "sleeping"


@pytest.mark.long
async def test_what_happened_while_there_was_no_service_is_not_in_the_future(world: World) -> None:
    world.driver.skew = timedelta(minutes=90)
    made = await world.create(message="wait")
    await eventually(lambda: world.events(made, "chat.turn.started"))
    await world.stop()
    world.driver.let_go(made)
    await world.start()
    await ended(world, made)
    at = datetime.fromisoformat((await world.get(made))["last_activity_at"])
    assert at <= world.context.clock()


async def test_a_running_turn_keeps_it_awake(world: World, time: Time) -> None:
    made = await world.create(message="wait")
    await eventually(lambda: world.events(made, "chat.turn.started"))
    await felt(world, made)
    time.move(days=2)
    await look(world)
    assert await status(world, made) == "active"


@pytest.mark.long
async def test_a_message_that_waits_keeps_it_awake(world: World, time: Time) -> None:
    made = await idle(world)
    world.driver.fault(made, "refuse")
    await world.send(made, "hello")
    time.move(days=2)
    await look(world)
    assert await status(world, made) == "active"


@pytest.mark.long
async def test_an_engine_that_does_not_answer_is_not_idle(world: World, time: Time) -> None:
    made = await idle(world)
    world.driver.fault(made, "hang")
    time.move(days=2)
    await look(world)
    assert await status(world, made) == "active"
    world.driver.fault(made, "hang", on=False)  # or its end would be waited for


async def test_a_message_that_comes_while_it_is_put_to_sleep(world: World, time: Time) -> None:
    made = await idle(world)
    world.driver.fault(made, "slow")
    time.move(hours=2)
    await world.fleet.upkeep.round()
    sent = await world.send(made, "hello")
    await world.fleet.upkeep.settled()
    (end,) = await world.done(made, sent["message_id"])
    assert end["isComplete"]
    await world.reach(made, "active")


# Policies


@pytest.mark.long
async def test_sleep_when_done(world: World, time: Time) -> None:
    made = await world.create(message="wait", lifecycle_policy="sleep_when_done")
    await look(world)
    assert await status(world, made) == "active"
    world.driver.let_go(made)
    chat = (await world.get(made))["chats"][0]["id"]
    await ended(world, made)
    await felt(world, made)
    assert (await world.queue(made, chat))["queue"] == []
    time.move(seconds=10)
    await look(world)
    assert await status(world, made) == "sleeping"
    # Woken without a message it waits for one.
    await world.post(made, "/wake")
    await world.reach(made, "active")
    await felt(world, made)
    time.move(minutes=30)
    await look(world)
    assert await status(world, made) == "active"


async def test_a_queue_is_worked_off_before_it_is_done(world: World, time: Time) -> None:
    made = await world.create(message="first", lifecycle_policy="sleep_when_done")
    await ended(world, made)
    await world.send(made, "wait")
    await felt(world, made)
    time.move(minutes=1)
    await look(world)
    assert await status(world, made) == "active"


async def test_without_a_turn_nothing_is_done(world: World, time: Time) -> None:
    made = await idle(world, lifecycle_policy="archive_when_done")
    time.move(minutes=30)
    await look(world)
    assert await status(world, made) == "active"


@pytest.mark.long
async def test_archive_when_done(world: World, time: Time) -> None:
    made = await world.create(message="one", lifecycle_policy="archive_when_done")
    await ended(world, made)
    await felt(world, made)
    time.move(seconds=10)
    await look(world)
    assert await status(world, made) == "archived"
    assert (await world.states(made))[-2:] == ["sleeping", "archived"]


@pytest.mark.long
async def test_a_service_that_was_killed_after_the_turn_knows_that_it_is_done(
    world: World, time: Time
) -> None:
    made = await world.create(message="one", lifecycle_policy="sleep_when_done")
    await ended(world, made)
    await world.stop()
    await world.start()
    world.context.clock = time

    async def linked() -> bool:
        return world.fleet.of(made).site.line.link is not None

    await eventually(linked)
    await felt(world, made)
    time.move(seconds=10)
    await look(world)
    assert await status(world, made) == "sleeping"


@pytest.mark.long
@pytest.mark.parametrize("state", ["sleep", "archive"])
async def test_delete_after_inactivity(world: World, time: Time, state: str) -> None:
    made = await world.create(lifecycle_policy="delete_after_inactivity")
    kept = await world.create()
    for one in (made, kept):
        await world.post(one, f"/{state}")
    time.move(hours=23, minutes=59)
    await look(world)
    assert await status(world, made) is not None
    time.move(minutes=2)
    await look(world)
    assert await status(world, made) is None
    assert not world.driver.place(made).exists() and not world.driver.packed(made).exists()
    assert await status(world, kept) is not None


@pytest.mark.long
async def test_an_active_one_is_put_to_sleep_before_it_is_deleted(world: World, time: Time) -> None:
    made = await idle(world, lifecycle_policy="delete_after_inactivity")
    time.move(days=3)
    await look(world)
    assert await status(world, made) == "sleeping"
    time.move(hours=25)
    await look(world)
    assert await status(world, made) is None


@pytest.mark.long
async def test_a_message_that_waits_is_not_deleted(world: World, time: Time) -> None:
    made = await world.create(lifecycle_policy="delete_after_inactivity")
    world.driver.fault(made, "refuse")
    await world.send(made, "hello")
    await world.post(made, "/sleep")
    time.move(days=2)
    await look(world)
    assert await status(world, made) == "sleeping"


@pytest.mark.parametrize("used", [False, True])
async def test_a_long_history_is_deleted_in_parts_until_the_replica_is_used(
    world: World, time: Time, monkeypatch: pytest.MonkeyPatch, used: bool
) -> None:
    made = await world.create(lifecycle_policy="delete_after_inactivity")
    await world.post(made, "/sleep")
    for number in range(8):
        event = NewEvent("strange", {"n": number, "text": "x" * 10_000})
        await world.context.event_log.append(made, [event])
    monkeypatch.setattr(event_rows, "REMOVED_CHARACTERS", 15_000)
    parts: list[bool] = []

    def counted(connection: Connection, workspace_id: str) -> bool:
        parts.append(event_rows.remove_oldest(connection, workspace_id))
        if used:
            now = moment_text(world.context.clock())
            change_workspace(connection, workspace_id, rested_at=now)
        return parts[-1]

    monkeypatch.setattr(transitions, "remove_oldest", counted)
    time.move(days=2)
    await look(world)
    assert await status(world, made) == ("sleeping" if used else None)
    assert parts == [True] if used else parts[:3] == [True] * 3 and not parts[-1]


@pytest.mark.long
async def test_a_message_wins_over_the_deletion(world: World, time: Time) -> None:
    made = await world.create(lifecycle_policy="delete_after_inactivity")
    await world.post(made, "/sleep")
    time.move(days=2)
    deleting = asyncio.create_task(look(world))
    answer = await world.post(made, "/messages", {"message": "hello"})
    await deleting
    if answer.status_code == 200:
        await world.done(made, answer.json()["message_id"])
    else:
        assert answer.status_code == 404
        assert await status(world, made) is None


@pytest.mark.long
async def test_long_asleep_is_archived(world: World, time: Time) -> None:
    made = await world.create()
    await world.post(made, "/sleep")
    time.move(days=6, hours=23)
    await look(world)
    assert await status(world, made) == "sleeping"
    time.move(hours=2)
    await look(world)
    assert await status(world, made) == "archived"


@pytest.mark.long
async def test_what_cannot_be_archived_is_tried_again_later(world: World, time: Time) -> None:
    made = await world.create()
    await world.post(made, "/sleep")
    world.driver.pack_error = SandboxError("The disk is full.")
    time.move(days=8)
    await look(world)
    await look(world)
    assert world.driver.calls["pack"] == 1
    assert await status(world, made) == "sleeping"
    world.driver.pack_error = None
    time.move(minutes=61)
    await look(world)
    assert await status(world, made) == "archived"


# Archiving on request


@pytest.mark.long
async def test_archived_files_come_back_with_a_message(world: World) -> None:
    made = await world.create(message="one")
    await ended(world, made)
    assert (await world.post(made, "/archive")).json() == {"success": True}
    assert not world.driver.place(made).exists()
    history = (await world.client.get(f"/v1/replica/{made}/history")).json()["events"]
    assert [one["type"] for one in history if one["type"] == "user-message"] == ["user-message"]
    sent = await world.send(made, "two")
    assert sent["status"] == "waking"
    await world.done(made, sent["message_id"])
    assert world.driver.calls["unpack"] == 1
    states = await world.states(made)
    assert states == ["preparing", "active", "sleeping", "archived", "preparing", "active"]


@pytest.mark.long
async def test_a_message_stops_the_packing(world: World) -> None:
    made = await world.create()
    world.driver.packing = asyncio.Event()
    archiving = asyncio.create_task(world.post(made, "/archive"))
    await world.driver.packing.wait()
    sent = await world.send(made, "hello")
    assert sent["status"] == "waking"
    answer = await archiving
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert "woken" in answer.json()["error"]
    await world.done(made, sent["message_id"])
    assert "archived" not in await world.states(made)


@pytest.mark.long
async def test_deleting_stops_the_packing(world: World) -> None:
    made = await world.create()
    world.driver.packing = asyncio.Event()
    archiving = asyncio.create_task(world.post(made, "/archive"))
    await world.driver.packing.wait()
    assert (await world.client.delete(f"/v1/replica/{made}")).status_code == 200
    assert (await archiving).status_code == 409
    assert await status(world, made) is None


@pytest.mark.long
async def test_an_archive_that_is_gone(world: World) -> None:
    made = await world.create()
    await world.post(made, "/archive")
    hidden = world.driver.packed(made).with_name("hidden")
    world.driver.packed(made).rename(hidden)
    sent = await world.send(made, "hello")
    replica = await world.reach(made, "error")
    assert replica["error"] == "The archive is missing.\na path"
    told = (await world.client.get(f"/v1/workspaces/{made}/status")).json()
    assert told["error"] == replica["error"]
    hidden.rename(world.driver.packed(made))
    assert (await world.post(made, "/wake")).status_code == 202
    await world.done(made, sent["message_id"])


@pytest.mark.long
async def test_a_disk_too_full_to_restore(world: World) -> None:
    made = await world.create()
    await world.post(made, "/archive")
    world.driver.unpack_error = SandboxError("The disk is full. Make room, and try again.")
    await world.post(made, "/wake")
    replica = await world.reach(made, "error")
    assert "The disk is full" in replica["error"]
    world.driver.unpack_error = None
    await world.post(made, "/wake")
    await world.reach(made, "active")


@pytest.mark.long
async def test_a_disk_too_full_to_archive(world: World) -> None:
    made = await world.create()
    world.driver.pack_error = SandboxError("The disk is full. Make room, and try again.")
    answer = await world.post(made, "/archive")
    assert answer.status_code == 500
    assert "The disk is full" in answer.json()["error"]
    assert await status(world, made) == "sleeping"
    world.driver.pack_error = None
    assert (await world.post(made, "/archive")).status_code == 200


@pytest.mark.long
async def test_archived_are_listed_by_their_last_activity(world: World) -> None:
    first, second = await world.create(), await world.create()
    sent = await world.send(first, "later than the second one was made")
    await world.done(first, sent["message_id"])
    for one in (first, second):
        await world.post(one, "/archive")
    page = (await world.client.get("/v1/replica?status=archived")).json()
    assert [one["id"] for one in page["replicas"]] == [first, second]
    page = (await world.client.get("/v1/replica")).json()
    assert [one["id"] for one in page["replicas"]] == [second, first]


LOOKS = (
    "",
    "?include=environment,diffs",
    "/status",
    "/chats",
    "/history",
    "/chats/{chat}/queue",
    "/repo-files/search?q=a",
    "/repo-files/search?refresh=true",
    "/canvas",
)


@pytest.mark.long
@pytest.mark.parametrize("state", ["sleep", "archive"])
async def test_nothing_else_wakes_it(world: World, state: str) -> None:
    made = await world.create()
    chat = (await world.get(made))["chats"][0]["id"]
    await world.post(made, f"/{state}")
    before = await world.states(made)
    starts = world.driver.calls["start"]
    for path in LOOKS:
        answer = await world.client.get(f"/v1/replica/{made}{path.format(chat=chat)}")
        assert answer.status_code < 500, (path, answer.text)
    assert (await world.client.get("/v1/replica")).status_code == 200
    uploaded = await world.client.post(
        f"/v1/workspaces/{made}/canvas", files={"file": b"text"}, data={"filename": "a.md"}
    )
    assert uploaded.status_code < 500, uploaded.text
    await world.post(made, "/chats", {"provider": "builtin"})
    assert await world.states(made) == before
    assert world.driver.calls["start"] == starts
