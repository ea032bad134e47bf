"""Runs that are canceled, limited in time and number, superseded, queued, skipped, removed."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, update

from quarterdeck.service.automations import scheduler as retention
from quarterdeck.service.db.tables import services
from quarterdeck.service.formats import moment_text
from quarterdeck.service.replicas.rows import change_workspace
from quarterdeck.service.system_rows import announce
from quarterdeck.wire.base import utc_now
from tests.automations.conftest import SCHEDULE, Office
from tests.automations.host_payloads import pull_request
from tests.automations.hosting import OPENED, Hosting, trigger
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

MINUTELY: dict[str, Any] = {"type": "cron", "config": {"schedule": "* * * * *"}}
PUSHED = trigger("pull_request.synchronize")
CUSTOM: dict[str, Any] = {"type": "custom", "config": {}}
LONG_AGO = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def hosting(office: Office) -> Hosting:
    made = Hosting(office)
    await made.connect()
    return made


async def cancel(office: Office, automation_id: str, execution_id: str) -> dict[str, Any]:
    path = f"/v1/automations/{automation_id}/executions/{execution_id}/cancel"
    answer = await office.world.client.post(path)
    assert answer.status_code == 200, answer.text
    return answer.json()["execution"]


async def begun(office: Office, **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """An automation, and a run of it whose turn goes on."""
    made = await office.create(prompt="wait", **settings)
    run = await office.trigger(made["id"])
    workspace = run["workspace_id"]
    await office.reach(made["id"], run["execution_id"], "running")
    await eventually(lambda: office.world.events(workspace, "chat.turn.started"), "a turn")
    return made, run


async def results(office: Office, workspace_id: str) -> list[str]:
    """How the turns of a replica ended."""
    events = [one["event"] for one in await office.world.events(workspace_id, "chat.turn.delta")]
    return [one["payload"]["stopReason"] for one in events if one["type"] == "turn-result"]


async def stopped(office: Office, workspace_id: str) -> None:
    """Waits until the runner has stopped the turn of a replica."""
    await office.runner.turn()
    ended = await eventually(lambda: results(office, workspace_id), "the end of the turn")
    assert ended == ["cancelled"]


# canceling


async def test_a_canceled_run_has_failed_and_its_turn_is_stopped(office: Office) -> None:
    made, run = await begun(office)
    ended = await cancel(office, made["id"], run["execution_id"])
    assert (ended["status"], ended["reason"]) == ("failed", "canceled")
    assert ended["error"] and ended["completed_at"]
    await stopped(office, run["workspace_id"])
    path = f"/v1/automations/{made['id']}/executions/{run['execution_id']}"
    assert (await office.world.client.post(f"{path}/cancel")).status_code == 409
    assert (await office.get(f"{made['id']}/executions/{run['execution_id']}"))[
        "execution"
    ] == ended


@pytest.mark.long
async def test_a_run_that_is_canceled_before_it_runs_leaves_nothing_to_run(office: Office) -> None:
    made = await office.create()
    office.world.driver.gate = asyncio.Event()
    run = await office.trigger(made["id"])
    await cancel(office, made["id"], run["execution_id"])
    await office.runner.turn()
    [chat] = (await office.world.get(run["workspace_id"]))["chats"]

    async def empty() -> bool:
        return not (await office.world.queue(run["workspace_id"], chat["id"]))["queue"]

    await eventually(empty, "an empty queue")
    office.world.driver.gate.set()

    async def asleep() -> bool:
        office.clock.pass_by(seconds=5)
        await office.runner.turn()
        return (await office.world.get(run["workspace_id"]))["status"] == "sleeping"

    await eventually(asleep, "sleep")
    assert await office.world.events(run["workspace_id"], "chat.turn.started") == []


@pytest.mark.long
async def test_a_run_that_waits_is_canceled(office: Office) -> None:
    made = await office.create(concurrency=1, prompt="wait")
    first, second = [await office.trigger(made["id"]) for _ in range(2)]
    ended = await cancel(office, made["id"], second["execution_id"])
    assert (ended["status"], ended["workspace_id"]) == ("failed", None)
    await office.reach(made["id"], first["execution_id"], "running")


@pytest.mark.long
async def test_the_stop_outlives_the_service(office: Office) -> None:
    made, run = await begun(office)
    await cancel(office, made["id"], run["execution_id"])
    await office.restart()
    await office.world.reach(run["workspace_id"], "active")
    await stopped(office, run["workspace_id"])


async def test_what_a_person_ends_does_not_count(office: Office) -> None:
    made = await office.create(prompt="wait")
    for _ in range(6):
        run = await office.trigger(made["id"])
        await cancel(office, made["id"], run["execution_id"])
    assert (await office.get(made["id"]))["automation"]["enabled"]


async def test_a_turn_interrupted_by_hand_does_not_count(office: Office) -> None:
    made = await office.create(prompt="wait")
    for _ in range(5):
        run = await office.trigger(made["id"])
        workspace = run["workspace_id"]
        await eventually(
            lambda at=workspace: office.world.events(at, "chat.turn.started"), "a turn"
        )
        [chat] = (await office.world.get(workspace))["chats"]
        await office.world.post(workspace, f"/chats/{chat['id']}/interrupt")
        ended = await office.reach(made["id"], run["execution_id"], "failed")
        assert (ended["reason"], ended["error"]) == ("interrupted", "Its turn was interrupted.")
    assert (await office.get(made["id"]))["automation"]["enabled"]


@pytest.mark.long
async def test_failures_of_its_own_count_whatever_comes_between(office: Office) -> None:
    made = await office.create(prompt="wait")
    for _ in range(5):
        run = await office.trigger(made["id"])
        await cancel(office, made["id"], run["execution_id"])
        run = await office.trigger(made["id"])
        await office.reach(made["id"], run["execution_id"], "running")
        await office.world.client.delete(f"/v1/replica/{run['workspace_id']}")
        await office.reach(made["id"], run["execution_id"], "failed")
    off = (await office.get(made["id"]))["automation"]
    assert "after 5 failures" in off["disabled_reason"]


# limits


async def test_a_run_that_takes_too_long_is_stopped_and_counts(office: Office) -> None:
    made, run = await begun(office, max_minutes=5)
    office.clock.pass_by(minutes=5, seconds=-1)
    await office.runner.turn()
    await office.reach(made["id"], run["execution_id"], "running")
    office.clock.pass_by(seconds=1)
    await office.runner.turn()
    ended = await office.reach(made["id"], run["execution_id"], "failed")
    assert ended["reason"] == "timeout" and "5 minutes" in ended["error"]
    await stopped(office, run["workspace_id"])
    for _ in range(4):
        run = await office.trigger(made["id"])
        office.clock.pass_by(minutes=5)
        await office.runner.turn()
        await office.reach(made["id"], run["execution_id"], "failed")
    assert not (await office.get(made["id"]))["automation"]["enabled"]


async def test_runs_are_timed_by_the_clock_of_their_own_service(office: Office) -> None:
    made, run = await begun(office, max_minutes=5)
    database, own = office.world.context.database, office.world.context.home_id
    await database.write(lambda c: announce(c, "another", "unix:/nowhere"))
    await database.write(partial(give, run["workspace_id"], "another"))
    office.clock.pass_by(hours=2)  # ahead of the other service's
    await office.runner.turn()
    await office.reach(made["id"], run["execution_id"], "running")
    await database.write(
        lambda c: c.execute(update(services).values(seen_at=moment_text(LONG_AGO)))
    )
    await office.runner.turn()
    ended = await office.reach(made["id"], run["execution_id"], "failed")
    assert ended["reason"] == "timeout"
    await database.write(partial(give, run["workspace_id"], own))


def give(workspace_id: str, home_id: str, connection: Connection) -> None:
    """Let a replica belong to another service."""
    change_workspace(connection, workspace_id, home_id=home_id)


async def test_a_run_that_is_not_begun_is_in_time(office: Office) -> None:
    made = await office.create(max_minutes=1, concurrency=1, prompt="wait")
    first, second = [await office.trigger(made["id"]) for _ in range(2)]
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    await office.reach(made["id"], first["execution_id"], "failed")
    await office.runner.turn()
    run = await office.reach(made["id"], second["execution_id"], "running")
    assert run["started_at"] > run["triggered_at"]


async def test_more_runs_than_may_be_wait_in_their_order(office: Office) -> None:
    made = await office.create(prompt="wait", concurrency=2)
    runs: list[dict[str, Any]] = []
    for _ in range(5):
        runs.append(await office.trigger(made["id"]))
        office.clock.pass_by(seconds=1)
    places = [run["workspace_id"] for run in runs]
    assert places.count(None) == 3 and None not in places[:2]
    await office.runner.turn()

    async def under_way() -> set[str]:
        found = await office.runs(made["id"])
        return {one["id"] for one in found if one["status"] in ("creating", "running")}

    order = [run["execution_id"] for run in runs]
    for index, execution_id in enumerate(order):
        run = await office.reach(made["id"], execution_id, "running")
        assert await under_way() <= set(order[index : index + 2])
        office.world.driver.let_go(run["workspace_id"])
        await office.reach(made["id"], run["id"], "completed")
        await office.runner.turn()


async def test_a_burst_without_end_starts_its_run(office: Office) -> None:
    made = await office.create(
        triggers=[CUSTOM], debounce_seconds=60, debounce_max_seconds=90, prompt="wait"
    )
    url = f"/v1/automations/webhook/{made['webhook_token']}"
    for _ in range(3):
        assert (await office.world.client.post(url, json={})).status_code == 202
        [run] = await office.runs(made["id"])
        assert run["status"] == "pending"
        await office.runner.turn()
        office.clock.pass_by(seconds=29)
    office.clock.pass_by(seconds=3)
    await office.runner.turn()
    await office.reach(made["id"], run["id"], "running")


# pushes


async def test_a_push_ends_the_run_of_the_one_before(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED, PUSHED], prompt="wait")
    await hosting.host_a(pull_request())
    await hosting.host_a(pull_request(number=8))
    await office.runner.turn()
    other, old = await office.runs(made["id"])
    if old["trigger_payload"]["number"] == 8:
        other, old = old, other
    await office.reach(made["id"], other["id"], "running")
    run = await office.reach(made["id"], old["id"], "running")
    await eventually(
        lambda: office.world.events(run["workspace_id"], "chat.turn.started"), "a turn"
    )
    office.clock.pass_by(seconds=1)
    await hosting.host_a(pull_request("synchronize"))
    ended = await office.reach(made["id"], old["id"], "failed")
    assert ended["reason"] == "superseded"
    await stopped(office, run["workspace_id"])
    new = (await office.runs(made["id"]))[0]
    await office.reach(made["id"], new["id"], "running")
    await office.reach(made["id"], other["id"], "running")
    check = (await office.get(f"{made['id']}/executions/{old['id']}"))["execution"]["check"]
    assert check["conclusion"] == "cancelled"


async def test_a_push_that_queues_waits_for_the_run_before(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED, PUSHED], prompt="wait", on_new_event="queue")
    await hosting.host_a(pull_request())
    await office.runner.turn()
    [old] = await office.runs(made["id"])
    run = await office.reach(made["id"], old["id"], "running")
    waiting: list[str] = []
    for count in range(2):
        office.clock.pass_by(seconds=1)
        await hosting.host_a(pull_request("synchronize", title=f"Push {count}"))
        await office.runner.turn()
        waiting.append((await office.runs(made["id"]))[0]["id"])
    for later in waiting:
        await office.reach(made["id"], later, "pending")
        office.world.driver.let_go(run["workspace_id"])
        await office.reach(made["id"], run["id"], "completed")
        await office.runner.turn()
        run = await office.reach(made["id"], later, "running")


async def test_a_grouped_push_is_a_message_and_ends_nothing(hosting: Hosting) -> None:
    office = hosting.office
    grouped = trigger("pull_request.synchronize", group_pr_events=True)
    made = await office.create(triggers=[OPENED, grouped], prompt="wait")
    await hosting.host_a(pull_request())
    await office.runner.turn()
    [old] = await office.runs(made["id"])
    await office.reach(made["id"], old["id"], "running")
    office.clock.pass_by(seconds=1)
    await hosting.host_a(pull_request("synchronize"))
    await office.reach(made["id"], old["id"], "running")


# the history


async def skipped(office: Office, automation_id: str, query: str = "") -> list[dict[str, Any]]:
    found = (await office.get(f"{automation_id}/executions{query}"))["skipped"]
    keys = ("reason", "count", "first_at", "last_at")
    return [{key: one[key] for key in keys} for one in found]


def at(clock: str) -> str:
    return f"2026-11-20T{clock}:00.000Z"


async def test_moments_that_were_missed_are_in_the_history(office: Office) -> None:
    made = await office.create(triggers=[{"type": "cron", "config": {"schedule": "*/20 * * * *"}}])
    office.clock.pass_by(hours=2, minutes=5)
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    assert await skipped(office, made["id"]) == [
        {"reason": "missed", "count": 5, "first_at": at("08:20"), "last_at": at("09:40")}
    ]
    assert run["triggered_at"] == at("10:05")


async def test_a_long_outage_is_one_line(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY, CUSTOM])
    office.clock.pass_by(days=100)
    await office.runner.turn()
    [missed] = await skipped(office, made["id"])
    assert missed["count"] == 100 and missed["first_at"] == at("08:01")
    assert missed["last_at"] == "2027-02-28T07:59:00.000Z"


async def test_a_moment_of_a_year_ago_is_found(office: Office) -> None:
    made = await office.create(triggers=[SCHEDULE])
    office.clock.pass_by(hours=2, minutes=1)
    await office.runner.turn()
    assert await skipped(office, made["id"]) == [
        {"reason": "missed", "count": 1, "first_at": at("09:00"), "last_at": at("09:00")}
    ]


async def test_moments_left_out_while_a_run_goes_on_are_in_the_history(office: Office) -> None:
    made = await office.create(
        triggers=[MINUTELY], prompt="wait", config={"skip_while_running": True}
    )
    for _ in range(4):
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
    [run] = await office.runs(made["id"])
    assert await skipped(office, made["id"]) == [
        {"reason": "running", "count": 3, "first_at": at("08:02"), "last_at": at("08:04")}
    ]
    run = await office.reach(made["id"], run["id"], "running")
    office.world.driver.let_go(run["workspace_id"])
    await office.reach(made["id"], run["id"], "completed")
    for _ in range(2):
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
    assert [one["count"] for one in await skipped(office, made["id"])] == [1, 3]
    first = await skipped(office, made["id"], "?page=1&limit=1")
    second = await skipped(office, made["id"], "?page=2&limit=1")
    assert [one["count"] for one in first + second] == [1, 3]
    assert await skipped(office, made["id"], "?page=3&limit=1") == []


async def test_one_run_of_a_schedule_waits_for_its_turn(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY], prompt="wait", concurrency=1)
    for count in range(4):
        office.clock.pass_by(minutes=1)
        await office.runner.turn()
        if count == 0:
            [run] = await office.runs(made["id"])
            await office.reach(made["id"], run["id"], "running")
    assert [run["status"] for run in await office.runs(made["id"])] == ["pending", "running"]
    assert await skipped(office, made["id"]) == [
        {"reason": "concurrency", "count": 2, "first_at": at("08:03"), "last_at": at("08:04")}
    ]


async def test_runs_are_kept_for_as_long_as_the_automation_says(office: Office) -> None:
    office.clock.now = utc_now()  # by which the ends of turns are noted
    made = await office.create(triggers=[MINUTELY], prompt="wait", retention_days=3)
    other = await office.create(name="other")
    assert other["retention_days"] == 90
    office.clock.pass_by(minutes=10)
    await office.runner.turn()
    [run] = await office.runs(made["id"])
    run = await office.reach(made["id"], run["id"], "running")
    assert len(await skipped(office, made["id"])) == 1
    await office.change(made["id"], enabled=False)
    done = await office.trigger(other["id"])
    await office.reach(other["id"], done["execution_id"], "completed")
    office.clock.pass_by(days=4)
    await office.runner.turn()
    assert len(await office.runs(made["id"])) == 1, "it has not ended"
    assert await skipped(office, made["id"]) == []
    office.world.driver.let_go(run["workspace_id"])
    await office.reach(made["id"], run["id"], "completed")
    office.clock.pass_by(days=4)
    await office.runner.turn()
    assert await office.runs(made["id"]) == []
    assert len(await office.runs(other["id"])) == 1


async def test_old_runs_are_removed_a_few_at_a_time(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "REMOVED_AT_ONCE", 2)
    office.clock.now = utc_now()
    made = await office.create(concurrency=1, prompt="wait", retention_days=1)
    for _ in range(5):
        await office.trigger(made["id"])
    await office.change(made["id"], enabled=False)
    office.clock.pass_by(days=2)
    left: list[int] = []
    for _ in range(3):
        await office.runner.turn()
        left.append(len(await office.runs(made["id"])))
    assert left == [3, 1, 1], "one of them goes on"


@pytest.mark.parametrize(
    "wrong",
    [
        {"trust": "nobody"},
        {"on_new_event": "join"},
        {"max_minutes": 0},
        {"max_minutes": 10_081},
        {"concurrency": 0},
        {"concurrency": 101},
        {"retention_days": 0},
        {"retention_days": None},
        {"debounce_max_seconds": 0},
        {"webhook_secret": "too short"},
        {"webhook_secret": "a\nb" * 10},
    ],
    ids=str,
)
async def test_settings_out_of_bounds_are_refused(office: Office, wrong: dict[str, Any]) -> None:
    answer = await office.post(wrong)
    assert answer.status_code == 400 and next(iter(wrong)) in answer.json()["details"]


async def test_settings_are_told_changed_and_cleared(office: Office) -> None:
    given = {
        "trust": "approved",
        "on_new_event": "queue",
        "max_minutes": 30,
        "concurrency": 2,
        "retention_days": 7,
        "debounce_max_seconds": 300,
    }
    made = await office.create(**given)
    assert {name: made[name] for name in given} == given
    cleared = dict.fromkeys(("max_minutes", "concurrency", "debounce_max_seconds"))
    changed = await office.change(made["id"], trust="all", **cleared)
    assert {name: changed[name] for name in given} == {**given, **cleared, "trust": "all"}
