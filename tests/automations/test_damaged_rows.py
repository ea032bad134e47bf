"""Damaged rows of automations and runs: they stop, with a line in the log, and hold up no other."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from quarterdeck.service.formats import moment_text
from tests.automations.conftest import Office
from tests.automations.host_payloads import pull_request
from tests.automations.hosting import OPENED, Hosting
from tests.support.waiting import eventually

pytestmark = pytest.mark.one_database

MINUTELY: dict[str, Any] = {"type": "cron", "config": {"schedule": "* * * * *"}}


async def damage(office: Office, table: str, id: str, **columns: Any) -> None:
    values = ", ".join(f"{name} = :{name}" for name in columns)
    statement = text(f"UPDATE {table} SET {values} WHERE id = :id")
    await office.world.context.database.write(lambda c: c.execute(statement, {**columns, "id": id}))


async def column(office: Office, table: str, id: str, name: str) -> Any:
    statement = text(f"SELECT {name} FROM {table} WHERE id = :id")
    return await office.world.context.database.read(
        lambda c: c.execute(statement, {"id": id}).scalar_one()
    )


def about(caplog: pytest.LogCaptureFixture, id: str) -> list[str]:
    """The lines of the log that name a row."""
    return [one.getMessage() for one in caplog.records if id in one.getMessage()]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cron_next_fire_at", "0000-00-00"),
        ("cron_next_fire_at", "0001-01-01T00:00:00.000Z"),
        ("cron_next_fire_at", "2026-11-20"),
        ("cron_expression", "often"),
        ("cron_expression", None),
        ("cron_timezone", "Atlantis/Center"),
        ("config_json", "["),
        ("config_json", "[]"),
    ],
)
async def test_a_damaged_schedule_is_switched_off(
    office: Office, caplog: pytest.LogCaptureFixture, name: str, value: str | None
) -> None:
    whole, damaged = [await office.create(name=n, triggers=[MINUTELY]) for n in ("one", "two")]
    await damage(office, "automations", damaged["id"], **{name: value})
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    assert len(await office.runs(whole["id"])) == 1
    row = "automations", damaged["id"]
    assert not await column(office, *row, "enabled")
    assert "damaged" in await column(office, *row, "disabled_reason")
    assert len(about(caplog, damaged["id"])) == 1
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    assert len(await office.runs(whole["id"])) == 2
    assert len(about(caplog, damaged["id"])) == 1


async def test_a_moment_that_never_comes_does_not_end_the_runner(office: Office) -> None:
    made = await office.create(triggers=[MINUTELY])
    await damage(office, "automations", made["id"], cron_next_fire_at="x")
    hosting = Hosting(office)
    await hosting.connect()
    other = await office.create(name="other", triggers=[OPENED])
    office.runner.start()
    for number in (1, 2):
        office.clock.pass_by(seconds=1)
        await hosting.host_a(pull_request(number=number))
        newest = (await office.runs(other["id"]))[0]
        await office.reach(other["id"], newest["id"], "completed")


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("automation_executions", "trigger_json", "x"),
        ("automation_executions", "trigger_json", "{}"),
        ("automation_executions", "trigger_json", '{"time": "t", "pr": {"number": 1}}'),
        ("automation_executions", "trigger_json", '{"time": "t", "repository_ids": 5}'),
        ("automations", "config_json", "["),
        ("automations", "triggers_json", "[1]"),
    ],
)
async def test_a_damaged_run_ends(
    office: Office, caplog: pytest.LogCaptureFixture, table: str, name: str, value: str
) -> None:
    hosting = Hosting(office)
    await hosting.connect()
    whole, damaged = [await office.create(name=n, triggers=[OPENED]) for n in ("one", "two")]
    await hosting.host_a(pull_request())
    [run] = await office.runs(damaged["id"])
    id = damaged["id"] if table == "automations" else run["id"]
    await damage(office, table, id, **{name: value})
    await office.runner.turn()
    await office.reach(whole["id"], (await office.runs(whole["id"]))[0]["id"], "completed")
    row = "automation_executions", run["id"]

    async def ended() -> bool:
        return await column(office, *row, "status") == "failed"

    await eventually(ended, "the end of the damaged run")
    assert "damaged" in await column(office, *row, "error")
    assert len([line for line in about(caplog, run["id"]) if "started" in line]) == 1
    before = len(about(caplog, run["id"]))
    await office.runner.turn()
    assert len(about(caplog, run["id"])) == before


async def test_the_work_of_a_damaged_run_is_not_published_again_and_again(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    made = await office.create(config={"on_success": "push"})
    id = (await office.trigger(made["id"]))["execution_id"]
    await office.reach(made["id"], id, "completed")
    due = moment_text(office.clock.now)  # the end of a turn is noted by the true time
    await damage(
        office, "automation_executions", id, config_json="[", published_json="{", stop_due_at=due
    )
    await office.runner.turn()

    async def published() -> bool:
        return await column(office, "automation_executions", id, "stop_due_at") is None

    await eventually(published, "the end of the damaged work")
    lines = about(caplog, id)
    assert any("not carried out" in line for line in lines)
    await office.runner.turn()
    assert about(caplog, id) == lines


@pytest.mark.parametrize(
    "value", ["[", "[1]", '{"max_minutes": "x"}', '{"max_minutes": 99999999999}']
)
async def test_a_running_run_with_damaged_settings_holds_up_no_other(
    office: Office, value: str
) -> None:
    made = await office.create(prompt="wait", max_minutes=5)
    damaged, other = [await office.trigger(made["id"]) for _ in range(2)]
    for one in (damaged, other):
        await office.reach(made["id"], one["execution_id"], "running")
    await damage(office, "automation_executions", damaged["execution_id"], config_json=value)
    office.clock.pass_by(minutes=6)
    await office.runner.turn()
    ended = await office.reach(made["id"], other["execution_id"], "failed")
    assert ended["reason"] == "timeout"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("triggers_json", "[1]"),
        ("triggers_json", "x"),
        ("triggers_json", '[{"type": "host-a"}]'),
        (
            "triggers_json",
            json.dumps([{**OPENED, "config": {**OPENED["config"], "excluded_actors": 5}}]),
        ),
        ("config_json", "["),
    ],
)
async def test_an_event_starts_the_other_automations(
    office: Office, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    hosting = Hosting(office)
    await hosting.connect()
    damaged, whole = [await office.create(name=n, triggers=[OPENED]) for n in ("one", "two")]
    await damage(office, "automations", damaged["id"], **{name: value})
    answer = await hosting.host_a(pull_request())
    assert answer.status_code == 202, answer.text
    assert await hosting.begun(whole) == 1
    assert await hosting.begun(damaged) == 0
    assert len(about(caplog, damaged["id"])) == 1
