"""Schedules and waiting runs of several owners take turns."""

from typing import Any

import pytest

from quarterdeck.service.automations import runner, scheduler
from quarterdeck.service.automations.run_rows import due_executions
from quarterdeck.service.formats import moment_text
from tests.automations.conftest import Office

pytestmark = pytest.mark.one_database

MINUTELY: dict[str, Any] = {"type": "cron", "config": {"schedule": "* * * * *"}}
CALLED: dict[str, Any] = {"type": "custom"}


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def of_two(office: Office, count: int, **body: Any) -> tuple[list[dict[str, Any]], str]:
    """Some automations of a user, and the id of a later one of the organization."""
    personal = [await office.create(scope="user", **body) for _ in range(count)]
    return personal, (await office.create(scope="org", **body))["id"]


async def test_waiting_runs_of_owners_take_turns(office: Office) -> None:
    personal, shared = await of_two(office, 3, triggers=[CALLED], debounce_seconds=60)
    both = [*personal, (await office.get(shared))["automation"]]
    for made in both:
        office.clock.pass_by(seconds=1)
        path = f"/v1/automations/webhook/{made['webhook_token']}"
        assert (await office.world.client.post(path, json={})).status_code == 202
    office.clock.pass_by(seconds=61)
    now = moment_text(office.clock())
    due = await office.world.context.database.read(lambda c: due_executions(c, now, 2))
    assert [run["automation_id"] for run in due] == [personal[0]["id"], shared]
    due = await office.world.context.database.read(lambda c: due_executions(c, now, 9))
    assert [run["automation_id"] for run in due] == [
        personal[0]["id"],
        shared,
        personal[1]["id"],
        personal[2]["id"],
    ]


async def test_schedules_of_owners_take_turns(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run starts before all schedules of another owner have been fired."""
    _, shared = await of_two(office, 5, triggers=[MINUTELY])
    monkeypatch.setattr(scheduler, "BATCH", 2)
    happened: list[str] = []
    fire_due, begin = runner.fire_due, type(office.runner)._begin

    def firing(connection: Any, now: Any) -> int:
        done = fire_due(connection, now)
        happened.append(f"fired {done}")
        return done

    def beginning(self: Any, execution_id: str) -> None:
        happened.append(execution_id)
        begin(self, execution_id)

    monkeypatch.setattr(runner, "fire_due", firing)
    monkeypatch.setattr(type(office.runner), "_begin", beginning)
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    [run] = await office.runs(shared)
    assert happened[0] == "fired 2" and run["id"] in happened[1:3]
    assert happened.count("fired 2") == 3
