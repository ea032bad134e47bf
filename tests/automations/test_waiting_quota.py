"""How many runs of an owner may wait, and what becomes of events above that."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from quarterdeck.service import quotas
from quarterdeck.service.automations.scheduler import fire_due
from tests.automations.conftest import Office
from tests.automations.host_payloads import of_stranger, pull_request
from tests.automations.hosting import OPENED, Hosting, trigger

pytestmark = pytest.mark.one_database

PUSHED = trigger("pull_request.synchronize")
MINUTELY: dict[str, Any] = {"type": "cron", "config": {"schedule": "* * * * *"}}
SHA_2 = "c" * 40


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def hosting(office: Office, monkeypatch: pytest.MonkeyPatch) -> Hosting:
    """Hosts of a service that starts no run by itself, and where two may wait."""
    monkeypatch.setattr(quotas, "OWNED_MOST", 2)
    made = Hosting(office)
    await made.connect()
    return made


async def history(office: Office, made: dict[str, Any]) -> dict[str, Any]:
    return await office.get(f"{made['id']}/executions")


async def opened(hosting: Hosting, *numbers: int) -> None:
    for number in numbers:
        hosting.office.clock.pass_by(seconds=1)
        assert (await hosting.host_a(pull_request(number=number))).status_code == 202


async def test_events_above_the_quota_are_skipped(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED], debounce_seconds=600)
    await opened(hosting, 1, 2, 3, 4)
    found = await history(office, made)
    assert len(found["executions"]) == 2
    [skipped] = found["skipped"]
    assert (skipped["reason"], skipped["count"]) == ("quota", 2)


async def test_calls_of_its_own_webhook_above_the_quota_are_skipped(hosting: Hosting) -> None:
    office = hosting.office
    both = [OPENED, {"type": "custom"}]
    made = await office.create(triggers=both, debounce_seconds=600)
    await opened(hosting, 1, 2)
    path = f"/v1/automations/webhook/{made['webhook_token']}"
    answer = await office.world.client.post(path, json={}, headers={"Authorization": ""})
    assert answer.status_code == 202
    assert [one["reason"] for one in (await history(office, made))["skipped"]] == ["quota"]


async def test_a_run_by_hand_above_the_quota_is_refused(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED], debounce_seconds=600)
    await opened(hosting, 1, 2)
    answer = await office.world.client.post(f"/v1/automations/{made['id']}/trigger", json={})
    assert (answer.status_code, answer.json()["code"]) == (429, "QUOTA_REACHED")


async def test_a_schedule_above_the_quota_is_skipped(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED, MINUTELY], debounce_seconds=6_000)
    await opened(hosting, 1, 2)
    office.clock.pass_by(minutes=1)
    await office.runner.turn()
    assert [one["reason"] for one in (await history(office, made))["skipped"]] == ["quota"]


@contextmanager
def counts_of_waiting_runs() -> Generator[list[str]]:
    """Collect the statements that count the waiting runs of an owner."""
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        if "count(" in statement and "automation_executions JOIN automations" in statement:
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def test_an_event_counts_the_waiting_runs_of_an_owner_once(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = hosting.office
    monkeypatch.setattr(quotas, "OWNED_MOST", 4)
    made = [await office.create(name=f"n{n}", triggers=[OPENED]) for n in range(4)]
    monkeypatch.setattr(quotas, "OWNED_MOST", 2)
    with counts_of_waiting_runs() as statements:
        await opened(hosting, 1)
    found = [await history(office, one) for one in made]
    assert sorted(len(one["executions"]) for one in found) == [0, 0, 1, 1]
    assert sorted(len(one["skipped"]) for one in found) == [0, 0, 1, 1]
    assert len(statements) == 1


async def test_due_schedules_count_the_waiting_runs_of_an_owner_once(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = hosting.office
    monkeypatch.setattr(quotas, "OWNED_MOST", 4)
    made = [await office.create(name=f"n{n}", triggers=[MINUTELY]) for n in range(4)]
    monkeypatch.setattr(quotas, "OWNED_MOST", 2)
    office.clock.pass_by(minutes=1)
    with counts_of_waiting_runs() as statements:
        fired = await office.world.context.database.write(lambda c: fire_due(c, office.clock.now))
    found = [await history(office, one) for one in made]
    assert fired == 4 and sum(len(one["executions"]) for one in found) == 2
    assert len(statements) == 1


async def test_a_push_to_several_automations_takes_the_place_of_their_runs_at_the_quota(
    hosting: Hosting,
) -> None:
    office = hosting.office
    triggers = [OPENED, PUSHED]
    made = [await office.create(name=f"n{n}", triggers=triggers) for n in range(2)]
    await opened(hosting, 1)
    office.clock.pass_by(seconds=1)
    await hosting.host_a(pull_request("synchronize", number=1, sha=SHA_2))
    for one in made:
        newest, earlier = (await history(office, one))["executions"]
        assert (newest["status"], newest["head_sha"]) == ("pending", SHA_2)
        assert earlier["reason"] == "superseded"


async def test_strangers_do_not_keep_others_from_starting(hosting: Hosting) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED], debounce_seconds=600)
    for number in (1, 2, 3):
        office.clock.pass_by(seconds=1)
        await hosting.host_a(of_stranger(number=number))
    await opened(hosting, 4)
    found = await history(office, made)
    assert [run["awaiting_approval"] for run in found["executions"]] == [False, True, True]
    assert [one["count"] for one in found["skipped"]] == [1]


async def test_a_push_takes_the_place_of_the_run_before_also_above_the_quota(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = hosting.office
    made = await office.create(triggers=[OPENED, PUSHED])
    await hosting.host_a(of_stranger(number=1))
    office.clock.pass_by(seconds=1)
    await hosting.host_a(of_stranger(number=2))
    [second, first] = await office.runs(made["id"])
    office.clock.pass_by(seconds=1)
    # The room of the run that it replaces is enough.
    await hosting.host_a(of_stranger("synchronize", number=1, sha=SHA_2))
    newest, *_ = await office.runs(made["id"])
    assert newest["head_sha"] == SHA_2 and newest["status"] == "pending"
    assert (await office.get(f"{made['id']}/executions/{first['id']}"))["execution"][
        "reason"
    ] == "superseded"
    # Where even that is not enough, the outdated run ends all the same.
    monkeypatch.setattr(quotas, "OWNED_MOST", 1)
    office.clock.pass_by(seconds=1)
    await hosting.host_a(of_stranger("synchronize", number=2, sha=SHA_2))
    found = await history(office, made)
    ended = {run["id"]: run["reason"] for run in found["executions"]}
    assert ended[second["id"]] == "superseded" and len(ended) == 3
    assert [one["reason"] for one in found["skipped"]] == ["quota"]
