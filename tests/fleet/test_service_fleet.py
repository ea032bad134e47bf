"""Replicas come to life, sleep, wake, fail, are found again and go."""

import asyncio
import json
import signal
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from quarterdeck.sandboxes.errors import CloneError, SandboxError
from quarterdeck.service.db.tables import workspaces
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import find_workspace
from quarterdeck.service.start import build_service, open_service
from tests.fleet.conftest import SETTINGS, World
from tests.support.waiting import eventually

STATUS = "engine.status.changed"


async def test_a_replica_is_answered_at_once_and_becomes_active(world: World) -> None:
    world.driver.gate = asyncio.Event()
    made = await world.create(wait=False)
    assert (await world.get(made))["status"] == "preparing"
    assert (await world.get(made))["waking"] is False
    status = (await world.client.get(f"/v1/workspaces/{made}/status")).json()
    assert status["status"] == "preparing"
    world.driver.gate.set()
    await world.reach(made, "active")
    assert await world.states(made) == ["preparing", "active"]
    types = [event["type"] for event in await world.events(made)]
    assert types.index("engine.ready") < len(types) - 1 - types[::-1].index("engine.status.changed")


async def test_the_status_tells_what_is_being_done(world: World) -> None:
    world.driver.gate = asyncio.Event()
    made = await world.create(wait=False)

    async def told() -> bool:
        status = (await world.client.get(f"/v1/workspaces/{made}/status")).json()
        return status.get("message") == "Making directories"

    await eventually(told)
    world.driver.gate.set()
    await world.reach(made, "active")

    async def felt() -> bool:
        status = (await world.client.get(f"/v1/workspaces/{made}/status")).json()
        return "uptimeSeconds" in status.get("engineHeartbeat", {})

    await eventually(felt)
    status = (await world.client.get(f"/v1/workspaces/{made}/status")).json()
    heartbeat = status["engineHeartbeat"]
    assert heartbeat["fresh"] is True
    seen = datetime.fromisoformat(heartbeat["lastSeenAt"]).timestamp() * 1000
    assert heartbeat["uptimeSeconds"] == int(seen - heartbeat["bootTimeMs"]) // 1000
    assert "message" not in status and "error" not in status


@pytest.mark.long
async def test_sleep_and_wake(world: World) -> None:
    made = await world.create(message="first")
    assert (await world.post(made, "/sleep")).json() == {"success": True}
    replica = await world.get(made)
    assert replica["status"] == "sleeping"
    assert not world.driver.running(made)
    assert (await world.post(made, "/sleep")).status_code == 200  # no-op
    answer = await world.post(made, "/wake")
    assert (answer.status_code, answer.json()) == (202, {"status": "waking"})
    await world.reach(made, "active")
    assert (await world.post(made, "/wake")).status_code == 202  # no-op
    assert await world.states(made) == ["preparing", "active", "sleeping", "preparing", "active"]


@pytest.mark.long
async def test_sleeping_keeps_everything_the_engine_journaled(world: World) -> None:
    made = await world.create()
    sent = await world.send(made, "wait for ever")

    async def started() -> bool:
        return bool(await world.events(made, "chat.turn.started"))

    await eventually(started)
    await world.post(made, "/sleep")
    ends = await world.done(made, sent["message_id"])
    assert [end["isComplete"] for end in ends] == [False]
    assert [event["type"] for event in await world.events(made)][-1] == "engine.status.changed"
    assert (await world.get(made))["chats"][0]["processing"] is False


async def test_a_sleep_that_cannot_stop_the_sandbox_leaves_it_active(world: World) -> None:
    made = await world.create()
    world.driver.stop_error = SandboxError("It cannot be stopped.")
    answer = await world.post(made, "/sleep")
    assert answer.status_code == 500
    assert answer.json()["error"] == "It cannot be stopped."
    world.driver.stop_error = None
    sent = await world.send(made, "still there")
    await world.done(made, sent["message_id"])


@pytest.mark.long
async def test_a_message_accepted_while_falling_asleep_wakes_again(world: World) -> None:
    made = await world.create()
    await world.send(made, "wait")
    world.driver.fault(made, "slow")
    sleeping = asyncio.create_task(world.post(made, "/sleep"))

    async def stopping() -> bool:
        return world.fleet.of(made).stopping

    await eventually(stopping)
    sent = await world.send(made, "wake up")
    assert sent["status"] == "waking"
    world.driver.fault(made, "slow", on=False)
    assert (await sleeping).status_code == 200
    world.driver.let_go(made)
    ends = await world.done(made, sent["message_id"])
    assert len(ends) == 1
    assert await world.states(made) == ["preparing", "active", "sleeping", "preparing", "active"]


async def test_delete_removes_record_files_and_process(world: World) -> None:
    made = await world.create(message="hello")
    answer = await world.client.delete(f"/v1/replica/{made}")
    assert answer.json() == {"success": True}
    assert (await world.client.get(f"/v1/replica/{made}")).status_code == 404
    assert (await world.client.delete(f"/v1/replica/{made}")).status_code == 404
    assert not world.driver.place(made).exists()


async def test_delete_while_preparing(world: World) -> None:
    world.driver.gate = asyncio.Event()
    made = await world.create(wait=False)

    async def provisioning() -> bool:
        return world.driver.preparing == 1

    await eventually(provisioning)
    assert (await world.client.delete(f"/v1/replica/{made}")).status_code == 200
    assert world.driver.preparing == 0
    assert not world.driver.place(made).exists()


@pytest.mark.long
async def test_files_that_cannot_be_removed_are_removed_at_the_next_start(world: World) -> None:
    made = await world.create()
    world.driver.destroy_error = SandboxError("A file is held.")
    answer = await world.client.delete(f"/v1/replica/{made}")
    assert answer.status_code == 500
    assert "tried again" in answer.json()["error"]
    assert (await world.client.get(f"/v1/replica/{made}")).status_code == 404
    assert world.driver.place(made).exists()
    world.driver.destroy_error = None
    await world.stop()
    await world.start()

    async def gone() -> bool:
        return not world.driver.place(made).exists()

    await eventually(gone)


def counts(**known: Any) -> dict[str, Any]:
    """The block `status` of the event, as the contract has it."""
    return {
        "uptimeSeconds": 0,
        "activeSseClients": 0,
        "chatsTotal": 0,
        "chatsProcessing": 0,
        "reposTotal": 0,
        "hooksRunning": False,
        **known,
    }


async def test_every_state_is_told_with_its_counts(world: World) -> None:
    made = await world.create()
    assert (await world.post(made, "/chats", {"provider": "builtin"})).status_code == 201
    assert (await world.post(made, "/sleep")).status_code == 200
    assert (await world.post(made, "/archive")).status_code == 200
    told = [one for one in await world.events(made, STATUS) if "workspaceStatus" in one]
    assert [one["workspaceStatus"] for one in told] == [
        *("preparing", "active", "sleeping", "archived")
    ]
    assert [one["status"] for one in told] == [counts(chatsTotal=n) for n in (0, 1, 2, 2)]


async def test_a_failed_clone_is_an_error_that_waking_retries(world: World) -> None:
    world.driver.provision_error = CloneError("Cloning failed.", "fatal: early EOF")
    made = await world.create(wait=False, message="later")
    replica = await world.reach(made, "error")
    assert replica["error"] == "Cloning failed.\nfatal: early EOF"
    told = await world.events(made, "engine.status.changed")
    assert told[-1] == {
        "workspaceStatus": "error",
        "error": replica["error"],
        "status": counts(chatsTotal=1),
    }
    world.driver.provision_error = None
    assert (await world.post(made, "/wake")).status_code == 202
    replica = await world.reach(made, "active")
    assert replica["error"] is None

    async def delivered() -> bool:
        return len(await world.events(made, "chat.turn.completed")) == 1

    await eventually(delivered)


async def test_an_engine_that_does_not_start_is_an_error(world: World) -> None:
    world.driver.start_error = SandboxError("The engine did not come up.", "Traceback")
    made = await world.create(wait=False)
    assert (await world.reach(made, "error"))["error"] == "The engine did not come up.\nTraceback"


@pytest.mark.long
async def test_a_dead_engine_is_started_again(world: World) -> None:
    made = await world.create()
    first = world.driver.pid(made)
    world.driver.signal(made, signal.SIGKILL)

    async def again() -> bool:
        return world.driver.pid(made) != first and world.driver.running(made)

    await eventually(again)
    sent = await world.send(made, "after")
    await world.done(made, sent["message_id"])
    assert await world.states(made) == ["preparing", "active"]


@pytest.mark.long
async def test_an_engine_that_dies_again_and_again_is_given_up(world: World) -> None:
    made = await world.create()
    starts = world.driver.calls["start"]
    world.driver.fault(made, "die")
    world.driver.signal(made, signal.SIGKILL)
    replica = await world.reach(made, "error")
    assert "again and again" in replica["error"]
    assert world.driver.calls["start"] == starts + 3
    assert not world.driver.running(made)
    world.driver.fault(made, "die", on=False)
    await world.post(made, "/wake")
    await world.reach(made, "active")


@pytest.mark.long
async def test_the_log_says_why_a_dead_engine_is_not_started_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    made = await world.create()
    starts = world.driver.calls["start"]
    world.driver.start_error = SandboxError("No node has room.")
    world.driver.signal(made, signal.SIGKILL)
    await world.reach(made, "error")
    told = [line for line in caplog.messages if "not started: No node has room." in line]
    assert len(told) == world.driver.calls["start"] - starts > 1


class TestUnready:
    @pytest.fixture
    def settings(self) -> FleetSettings:
        return replace(SETTINGS, ready_limit=0.2)

    async def test_an_engine_that_never_reports_ready_is_an_error(self, world: World) -> None:
        world.driver.gate = asyncio.Event()
        made = await world.create(wait=False)
        world.driver.fault(made, "unready")
        world.driver.gate.set()
        assert "ready in time" in (await world.reach(made, "error"))["error"]
        assert not world.driver.running(made)


class TestLimits:
    @pytest.fixture
    def settings(self) -> FleetSettings:
        return replace(SETTINGS, active_limit=2, preparing_at_once=1)

    async def test_only_so_many_may_be_active(self, world: World) -> None:
        first = await world.create()
        second = await world.create()
        body = {"name": "third", "environment_id": world.environment}
        answer = await world.client.post("/v1/replica", json=body)
        assert (answer.status_code, answer.json()["code"]) == (429, "WORKSPACE_LIMIT_REACHED")
        await world.post(first, "/sleep")
        assert (await world.client.post("/v1/replica", json=body)).status_code == 201
        for refused in (
            await world.post(first, "/wake"),
            await world.post(first, "/messages", {"message": "hello"}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (429, "WORKSPACE_LIMIT_REACHED")
        assert (await world.get(first))["status"] == "sleeping"
        chat = (await world.get(first))["chats"][0]["id"]
        assert (await world.queue(first, chat))["queue"] == []
        await world.client.delete(f"/v1/replica/{second}")
        assert (await world.post(first, "/wake")).status_code == 202

    async def test_preparing_is_bounded(self, world: World) -> None:
        world.driver.gate = asyncio.Event()
        both = [await world.create(wait=False) for _ in range(2)]

        async def begun() -> bool:
            return world.driver.preparing > 0

        await eventually(begun)
        world.driver.gate.set()
        for one in both:
            await world.reach(one, "active")
        assert world.driver.most_preparing == 1


async def test_a_stopped_service_finds_its_engine_again(world: World) -> None:
    made = await world.create()
    pid = world.driver.pid(made)
    sent = await world.send(made, "wait")

    async def started() -> bool:
        return bool(await world.events(made, "chat.turn.started"))

    await eventually(started)
    await world.stop()
    assert world.driver.running(made)
    world.driver.let_go(made)
    await world.start()
    assert len(await world.done(made, sent["message_id"])) == 1
    assert world.driver.pid(made) == pid
    assert (await world.get(made))["status"] == "active"
    assert await world.states(made) == ["preparing", "active"]


@pytest.mark.long
async def test_a_service_starts_an_engine_that_died_meanwhile(world: World) -> None:
    made = await world.create()
    await world.stop()
    world.driver.signal(made, signal.SIGKILL)
    await world.start()
    sent = await world.send(made, "again")
    await world.done(made, sent["message_id"])


@pytest.mark.long
async def test_after_another_boot_replicas_sleep(world: World) -> None:
    made = await world.create()
    awaited = await world.create()
    world.driver.fault(awaited, "refuse")
    await world.send(awaited, "for later")
    await world.stop()
    world.driver.kill_all()
    world.driver.fault(awaited, "refuse", on=False)
    world.settings = replace(world.settings, boot_id="another")
    await world.start()
    assert (await world.get(made))["status"] == "sleeping"
    assert await world.states(made) == ["preparing", "active", "sleeping"]
    await world.reach(awaited, "active")  # its message was accepted, so it wakes
    await world.post(made, "/wake")
    await world.reach(made, "active")


class TestHanging:
    @pytest.fixture
    def settings(self) -> FleetSettings:
        return replace(SETTINGS, call_limit=0.5, heartbeat=60, link_limit=0.5, link_wait=1.0)

    async def test_a_hanging_engine_is_told_as_unreachable(self, world: World) -> None:
        made = await world.create()

        async def felt() -> bool:
            return world.fleet.of(made).site.pulse.report is not None

        await eventually(felt, "a first pulse")  # or it would be the one that is not answered
        world.driver.fault(made, "hang")
        answer = await world.client.get(f"/v1/replica/{made}/terminal/sessions")
        # The watch over it may notice first, and then it is being started anew.
        told = (answer.status_code, answer.json()["code"])
        assert told in ((502, "ENGINE_UNREACHABLE"), (503, "ENGINE_STARTING"))
        sent = await world.send(made, "in the meantime")
        world.driver.fault(made, "hang", on=False)
        assert len(await world.done(made, sent["message_id"])) == 1


class TestFaults:
    @pytest.fixture
    def settings(self) -> FleetSettings:
        return replace(SETTINGS, heartbeat=0.02)

    async def test_a_journal_that_cannot_be_written_is_told_once_each_time(
        self, world: World
    ) -> None:
        made = await world.create()
        report = world.driver.place(made) / "report.json"

        async def told(times: int) -> list[dict[str, Any]] | None:
            found = await world.events(made, "error")
            return found if len(found) == times else None

        async def felt(fault: str | None) -> bool:
            pulse = world.fleet.of(made).site.pulse.report
            return pulse is not None and pulse.journal_fault == fault

        for times in (1, 2):
            written = report.with_suffix(".new")
            written.write_text(json.dumps({"journalFault": "No space left on device"}))
            written.replace(report)
            found = await eventually(lambda times=times: told(times), "the fault")
            for _ in range(3):  # it goes on, and is not told again
                world.fleet.of(made).site.pulse.report = None
                await eventually(lambda: felt("No space left on device"), "a pulse")
            assert await told(times)
            report.unlink()
            await eventually(lambda: felt(None), "a journal that is well")
        assert "No space left on device" in found[0]["message"]
        assert "Free some space" in found[0]["message"]
        assert found[0]["code"] == "INTERNAL_ERROR"


@pytest.mark.long
@pytest.mark.parametrize("settings", [replace(SETTINGS, link_wait=60.0)])
async def test_calls_wait_while_an_engine_is_started_again(world: World) -> None:
    made = await world.create()
    world.driver.signal(made, signal.SIGKILL)
    answer = await world.post(made, "/exec", {"command": "echo back"})
    if answer.status_code == 502:  # it was under way when the engine died
        answer = await world.post(made, "/exec", {"command": "echo back"})
    assert answer.is_success and answer.json()["output"] == "back\n", answer.text


@pytest.mark.long
@pytest.mark.parametrize("settings", [replace(SETTINGS, link_wait=0.1)])
async def test_calls_do_not_wait_for_ever_for_an_engine(world: World) -> None:
    made = await world.create()
    world.driver.start_error = SandboxError("It does not start.")
    world.driver.gate = asyncio.Event()
    world.driver.signal(made, signal.SIGKILL)

    async def starting() -> bool:
        answer = await world.post(made, "/exec", {"command": "true"})
        return answer.status_code == 503 and answer.json()["code"] == "ENGINE_STARTING"

    await eventually(starting)


async def test_the_branch_is_named_after_the_replica(world: World) -> None:
    await world.create(name="a~b..c")
    assert world.driver.made_on == ["qd/a-b-c"]


@pytest.mark.long
async def test_what_is_left_of_a_hook_test_is_not_begun_again(world: World) -> None:
    world.driver.gate = asyncio.Event()
    left, other = [await world.create(wait=False) for _ in range(2)]
    await world.stop()
    async with open_service(world.home, world.driver, list, world.database_url) as context:
        testing = update(workspaces).where(workspaces.c.id == left)
        await context.database.write(lambda c: c.execute(testing.values(warm_state="testing")))
        fleet = build_service(context, world.settings).fleet
        await fleet.start()
        lives = {task.get_name() for task in asyncio.all_tasks()}
        await fleet.close()
    await world.start()
    assert f"life of {other}" in lives and f"life of {left}" not in lives

    async def removed() -> bool:
        return await world.context.database.read(lambda c: find_workspace(c, left)) is None

    await eventually(removed)
    world.driver.gate.set()
    await world.reach(other, "active")


@pytest.mark.parametrize(("made", "stays"), [(0, True), (70, False)])
async def test_the_workspace_of_a_hook_test_that_nobody_begins_goes_after_a_minute(
    world: World, made: int, stays: bool
) -> None:
    world.driver.gate = asyncio.Event()
    left = await world.create(wait=False)
    context, fleet = world.context, world.fleet
    assert isinstance(fleet, Fleet)
    since = moment_text(context.clock() - timedelta(seconds=made))
    values = {"warm_state": "testing", "created_at": since}
    row = update(workspaces).where(workspaces.c.id == left).values(values)
    await context.database.write(lambda c: c.execute(row))
    await fleet.pools._tend()
    found = await context.database.read(lambda c: find_workspace(c, left))
    assert (found is not None) == stays
