"""Schedules make runs, once each; runs have a workspace, follow it and end."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.automations import runner
from quarterdeck.service.automations.runner import AutomationRunner, RunnerSettings
from quarterdeck.wire.base import utc_now
from tests.automations.conftest import SCHEDULE, Office
from tests.support.waiting import eventually

MINUTELY = {"type": "cron", "config": {"schedule": "* * * * *"}}


async def test_a_schedule_that_comes_makes_one_run_with_a_workspace(office: Office) -> None:
    made = await office.create(
        triggers=[SCHEDULE],
        workspace_size="large",
        workspace_auto_stop_minutes=5,
        workspace_lifecycle_policy="sleep_when_done",
    )
    assert made["cron_next_fire_at"] == "2026-11-20T09:00:00.000Z"
    await office.runner.turn()
    assert await office.runs(made["id"]) == []
    office.clock.pass_by(hours=1)
    await office.runner.turn()
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    run = await office.reach(made["id"], run["id"], "completed")
    assert run["error"] is None and run["trigger_type"] == "cron"
    assert run["completed_at"] is not None
    replica = await office.world.get(run["workspace_id"])
    assert replica["source"] == "automation" and replica["name"].startswith("nightly-")
    told = (await office.get(made["id"]))["automation"]
    assert told["cron_next_fire_at"] == "2026-11-21T09:00:00.000Z"


async def test_the_work_of_a_run_is_published_when_it_ends(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.clock.now = utc_now() + timedelta(minutes=5)  # runs are timed by the event log
    office.runner._settings = RunnerSettings(longest_wait=3600)
    published = asyncio.Event()

    async def publish(*_: object) -> None:
        published.set()

    monkeypatch.setattr(runner, "publish_work", publish)
    office.runner.start()
    made = await office.create(config={"on_success": "push"})
    await office.trigger(made["id"])
    async with asyncio.timeout(60):
        await published.wait()


async def test_a_moment_missed_for_less_than_an_hour_is_made_up_for_once(office: Office) -> None:
    made = await office.create(triggers=[{"type": "cron", "config": {"schedule": "*/20 * * * *"}}])
    office.clock.pass_by(minutes=59)  # 8:20 and 8:40 were missed
    await office.runner.turn()
    assert len(await office.runs(made["id"])) == 1
    told = (await office.get(made["id"]))["automation"]
    assert told["cron_next_fire_at"] == "2026-11-20T09:00:00.000Z"


async def test_a_moment_missed_for_longer_is_left_out(office: Office) -> None:
    made = await office.create(triggers=[SCHEDULE])
    office.clock.pass_by(hours=2, minutes=1)
    await office.runner.turn()
    assert await office.runs(made["id"]) == []
    told = (await office.get(made["id"]))["automation"]
    assert told["cron_next_fire_at"] == "2026-11-21T09:00:00.000Z"


async def test_a_change_does_not_pass_over_a_moment_that_has_come(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY])
    office.clock.pass_by(minutes=1, seconds=1)
    triggers = [MINUTELY, {"type": "custom", "config": {}}]
    path = f"/v1/automations/{made['id']}"
    answer = await office.world.client.patch(path, json={"triggers": triggers})
    assert answer.status_code == 200, answer.text
    await office.runner.turn()
    assert len(await office.runs(made["id"])) == 1


@pytest.mark.long
async def test_several_runners_make_one_run_of_a_fire(office: Office) -> None:
    made = [await office.create(triggers=[MINUTELY]) for _ in range(3)]
    service = office.world.service
    of = service.context, service.fleet, service.checks, service.host_apis
    others = [AutomationRunner(*of) for _ in range(3)]
    for _ in range(5):
        office.clock.pass_by(minutes=1)
        await asyncio.gather(*(one.turn() for one in (office.runner, *others)))
    for one in others:
        await one.close()
    for automation in made:
        times = [run["triggered_at"] for run in await office.runs(automation["id"])]
        assert len(times) == len(set(times)) == 5


async def test_a_run_in_progress_does_not_stop_the_next(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY], prompt="wait")
    for _ in range(2):
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
    assert len(await office.runs(made["id"])) == 2


async def test_a_run_in_progress_stops_the_next_when_the_automation_says_so(
    office: Office,
) -> None:
    made = await office.create(
        triggers=[MINUTELY], prompt="wait", config={"skip_while_running": True, "mine": 1}
    )
    assert made["config"] == {"skip_while_running": True, "report": False, "mine": 1}
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    await office.reach(made["id"], run["id"], "running")
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    assert len(await office.runs(made["id"])) == 1
    office.world.driver.let_go((await office.runs(made["id"]))[0]["workspace_id"])
    await office.reach(made["id"], run["id"], "completed")
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    assert len(await office.runs(made["id"])) == 2


async def test_a_run_that_waits_for_a_place_stops_the_next_too(office: Office) -> None:
    bystander = await office.world.create()
    office.world.fleet.settings = office.limited_to(1)
    made = await office.create(triggers=[MINUTELY], config={"skip_while_running": True})
    for _ in range(3):
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
    [run] = await office.runs(made["id"])
    assert run["status"] == "pending"
    await office.world.client.delete(f"/v1/replica/{bystander}")
    office.clock.pass_by(seconds=30)
    await office.runner.turn()
    await office.reach(made["id"], run["id"], "completed")


async def test_one_that_is_switched_off_does_not_fire_and_goes_on_from_now(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY], enabled=False)
    assert made["cron_next_fire_at"] is None
    office.clock.pass_by(minutes=5)
    await office.runner.turn()
    assert await office.runs(made["id"]) == []
    changed = await office.change(made["id"], enabled=True)
    assert changed["cron_next_fire_at"] == "2026-11-20T08:06:00.000Z"


async def test_five_failures_in_a_row_switch_it_off_with_the_reason(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY])
    office.world.driver.provision_error = SandboxError("No room on the disk.")
    for count in range(1, 6):
        before = (await office.get(made["id"]))["automation"]
        assert before["enabled"] and before["disabled_reason"] is None
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
        runs = await office.runs(made["id"])
        assert len(runs) == count
        run = await office.reach(made["id"], runs[0]["id"], "failed")
        assert "No room on the disk." in run["error"]
    off = (await office.get(made["id"]))["automation"]
    assert not off["enabled"] and off["cron_next_fire_at"] is None
    assert "5 failures in a row" in off["disabled_reason"]
    assert "No room on the disk." in off["disabled_reason"]
    again = await office.change(made["id"], enabled=True)
    assert again["disabled_reason"] is None and again["cron_next_fire_at"]


async def test_a_success_between_failures_begins_the_count_anew(office: Office) -> None:
    made = await office.create()
    for place in range(9):
        bad = place != 4
        office.world.driver.provision_error = SandboxError("No room.") if bad else None
        run = await office.trigger(made["id"])
        await office.reach(made["id"], run["execution_id"], "failed" if bad else "completed")
    assert (await office.get(made["id"]))["automation"]["enabled"]


async def test_a_failed_turn_is_a_failed_run(office: Office) -> None:
    made = await office.create(prompt="wait")
    run = await office.trigger(made["id"])
    await office.reach(made["id"], run["execution_id"], "running")
    [chat] = (await office.world.get(run["workspace_id"]))["chats"]
    await eventually(lambda: office.world.events(run["workspace_id"], "chat.turn.started"))
    await office.world.post(run["workspace_id"], f"/chats/{chat['id']}/interrupt")
    ended = await office.reach(made["id"], run["execution_id"], "failed")
    assert ended["error"] == "Its turn was interrupted."


async def test_a_run_whose_replica_is_deleted_has_failed(office: Office) -> None:
    made = await office.create(prompt="wait")
    run = await office.trigger(made["id"])
    await office.reach(made["id"], run["execution_id"], "running")
    await office.world.client.delete(f"/v1/replica/{run['workspace_id']}")
    ended = await office.reach(made["id"], run["execution_id"], "failed")
    assert "deleted" in ended["error"] and ended["workspace_id"] == run["workspace_id"]


async def test_a_message_taken_out_of_the_queue_ends_its_run(office: Office) -> None:
    made = await office.create()
    office.world.driver.gate = asyncio.Event()
    run = await office.trigger(made["id"])
    [chat] = (await office.world.get(run["workspace_id"]))["chats"]
    path = f"/v1/replica/{run['workspace_id']}/chats/{chat['id']}/queue"
    assert (await office.world.client.delete(path)).status_code == 200
    ended = await office.reach(made["id"], run["execution_id"], "failed")
    assert "queue" in ended["error"]
    office.world.driver.gate.set()


async def test_deleting_an_automation_in_mid_run_leaves_its_replica(office: Office) -> None:
    made = await office.create(prompt="wait")
    run = await office.trigger(made["id"])
    await office.reach(made["id"], run["execution_id"], "running")
    answer = await office.world.client.delete(f"/v1/automations/{made['id']}")
    assert answer.json() == {"success": True}
    for path in (
        made["id"],
        f"{made['id']}/executions",
        f"{made['id']}/executions/{run['execution_id']}",
    ):
        assert (await office.world.client.get(f"/v1/automations/{path}")).status_code == 404
    office.world.driver.let_go(run["workspace_id"])
    [started] = await eventually(
        lambda: office.world.events(run["workspace_id"], "chat.turn.started")
    )
    [end] = await office.world.done(run["workspace_id"], started["messageId"])
    assert end["isComplete"]


async def test_a_run_without_a_place_waits_for_one(office: Office) -> None:
    made = await office.create(prompt="wait")
    office.world.fleet.settings = office.limited_to(1)
    first = await office.trigger(made["id"])
    second = await office.trigger(made["id"])
    assert first["workspace_id"] is not None and second["workspace_id"] is None
    await office.reach(made["id"], second["execution_id"], "pending")
    await office.world.client.delete(f"/v1/replica/{first['workspace_id']}")
    office.clock.pass_by(seconds=30)
    await office.runner.turn()
    await office.reach(made["id"], second["execution_id"], "running")


async def test_a_run_by_hand_of_one_that_is_off_waits_for_a_place_all_the_same(
    office: Office,
) -> None:
    bystander = await office.world.create()
    office.world.fleet.settings = office.limited_to(1)
    made = await office.create(enabled=False)
    begun = await office.trigger(made["id"])
    await office.change(made["id"], enabled=False)
    await office.world.client.delete(f"/v1/replica/{bystander}")
    office.clock.pass_by(seconds=30)
    await office.runner.turn()
    await office.reach(made["id"], begun["execution_id"], "completed")


@pytest.mark.long
async def test_failures_that_switch_it_off_end_what_waits_too(office: Office) -> None:
    made = await office.create(prompt="wait")
    office.world.fleet.settings = office.limited_to(5)
    begun = [await office.trigger(made["id"]) for _ in range(6)]
    waiting = begun.pop()
    assert waiting["workspace_id"] is None
    for one in begun:
        await office.reach(made["id"], one["execution_id"], "running")
        await office.world.client.delete(f"/v1/replica/{one['workspace_id']}")
    run = await office.reach(made["id"], waiting["execution_id"], "failed")
    assert "switched off before" in run["error"]
    off = (await office.get(made["id"]))["automation"]
    assert "after 5 failures" in off["disabled_reason"]


async def test_a_retry_is_a_new_run_under_the_present_settings(office: Office) -> None:
    made = await office.create()
    office.world.driver.provision_error = SandboxError("No room.")
    first = await office.trigger(made["id"], payload={"n": 1})
    old = await office.reach(made["id"], first["execution_id"], "failed")
    office.world.driver.provision_error = None
    await office.change(made["id"], prompt="Something else.", workspace_size="large")
    path = f"/v1/automations/{made['id']}/executions/{old['id']}/retry"
    answer = await office.world.client.post(path)
    assert answer.status_code == 200, answer.text
    again = answer.json()
    assert again["workspace_id"] not in (None, old["workspace_id"])
    run = await office.reach(made["id"], again["execution_id"], "completed")
    assert run["retry_of"] == old["id"] and run["trigger_payload"] == {"n": 1}
    assert run["config"]["workspace_size"] == "large"
    assert (await office.get(f"{made['id']}/executions/{old['id']}"))["execution"] == old
    said = await office.said(run["workspace_id"])
    assert said.startswith("Something else.") and '"n": 1' in said


async def test_a_retry_without_a_place_waits_for_one(office: Office) -> None:
    made = await office.create()
    office.world.driver.provision_error = SandboxError("No room.")
    first = await office.trigger(made["id"])
    await office.reach(made["id"], first["execution_id"], "failed")
    office.world.driver.provision_error = None
    await office.world.client.delete(f"/v1/replica/{first['workspace_id']}")
    bystander = await office.world.create()
    office.world.fleet.settings = office.limited_to(1)
    path = f"/v1/automations/{made['id']}/executions/{first['execution_id']}/retry"
    answer = await office.world.client.post(path)
    assert answer.status_code == 200, answer.text
    again = answer.json()
    assert again["workspace_id"] is None
    runs = {run["id"]: run["status"] for run in await office.runs(made["id"])}
    assert runs == {first["execution_id"]: "failed", again["execution_id"]: "pending"}
    await office.world.client.delete(f"/v1/replica/{bystander}")
    office.clock.pass_by(seconds=30)
    await office.runner.turn()
    await office.reach(made["id"], again["execution_id"], "completed")


async def test_only_a_failed_run_is_retried(office: Office) -> None:
    made = await office.create()
    run = await office.trigger(made["id"])
    await office.reach(made["id"], run["execution_id"], "completed")
    path = f"/v1/automations/{made['id']}/executions/{{}}/retry"
    client = office.world.client
    assert (await client.post(path.format(run["execution_id"]))).status_code == 409
    assert (await client.post(path.format(made["id"]))).status_code == 404
    assert (await client.post(path.format("x"))).status_code == 400


async def test_an_agent_that_is_gone_fails_the_run(office: Office) -> None:
    made = await office.create(agent_provider="gemini")
    office.world.agents = [one for one in office.world.agents if one.id != "gemini"]
    answer = await office.world.client.post(f"/v1/automations/{made['id']}/trigger", json={})
    assert answer.status_code == 400
    [run] = await office.runs(made["id"])
    assert run["status"] == "failed" and "no such agent" in run["error"]


async def test_a_killed_service_neither_loses_nor_doubles_a_run(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY])
    office.world.driver.gate = asyncio.Event()
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    await office.reach(made["id"], run["id"], "creating")
    await office.restart()
    office.world.driver.gate.set()
    await office.runner.turn()
    [again] = await office.runs(made["id"])
    assert again["id"] == run["id"]
    ended = await office.reach(made["id"], run["id"], "completed")
    starts = await office.world.events(ended["workspace_id"], "chat.turn.started")
    assert len(starts) == 1


@pytest.mark.parametrize("late", [timedelta(0), timedelta(minutes=30)])
async def test_the_runner_works_by_itself(office: Office, late: timedelta) -> None:
    made = await office.create(triggers=[SCHEDULE])
    office.clock.pass_by(hours=1)
    office.clock.now += late
    office.runner.start()

    async def fired() -> Any:
        return await office.runs(made["id"])

    [run] = await eventually(fired)
    await office.reach(made["id"], run["id"], "completed")
