"""Runs for which there is no place: their check is open while they wait, and is theirs in the end."""

from dataclasses import replace

import pytest

from quarterdeck.service.automations.dispatch import take_event
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.automations.run_rows import due_executions
from quarterdeck.service.automations.service import find_automation
from quarterdeck.service.fleet.settings import FleetSettings
from quarterdeck.service.formats import moment_text
from quarterdeck.service.quotas import WaitingRuns
from quarterdeck.wire.automation_runs import PullRequestRef
from tests.checks.desk import SHA, SHA_2, Begun, Desk, pull_request
from tests.fleet.conftest import SETTINGS
from tests.support.waiting import eventually

OPENED = "pull_request.opened"


@pytest.fixture
def settings() -> FleetSettings:
    return replace(SETTINGS, active_limit=1)


async def make_room(desk: Desk, bystander: str) -> None:
    assert (await desk.world.client.delete(f"/v1/replica/{bystander}")).status_code == 200
    desk.clock.pass_by(seconds=30)
    await desk.runner.turn()


async def tried(desk: Desk) -> None:
    """Waits until a run that was due was put off."""

    async def none_due() -> bool:
        now = moment_text(desk.clock())
        return not await desk.world.context.database.read(lambda c: due_executions(c, now, 1))

    await eventually(none_due, "a try")


async def started(desk: Desk, automation: str) -> Begun:
    [run] = await desk.runs(automation)
    begun = {"automation": automation, "execution_id": run["id"]}
    return begun | {"workspace_id": (await desk.ended(begun, "running"))["workspace_id"]}


async def test_a_start_that_is_made_again_keeps_its_check(desk: Desk) -> None:
    bystander = await desk.world.create()
    automation = await desk.waiting()
    waiting = await desk.trigger(automation)
    assert waiting["workspace_id"] is None
    assert (await desk.check_of(waiting))["status"] == "open"
    for _ in range(2):
        desk.clock.pass_by(seconds=30)
        await desk.runner.turn()
    await make_room(desk, bystander)
    begun = await started(desk, automation)
    run = desk.source_host.only_run()
    assert (await desk.ticket(begun))[0] == str(run["id"])
    assert await desk.report(begun)
    await desk.told()
    assert run["conclusion"] == "success"


async def event(desk: Desk, automation: str, sha: str) -> None:
    """An event of host A, as its webhook would bring it."""
    about = PullRequestRef.model_validate(pull_request(sha=sha))
    now = desk.clock()
    occasion = TriggerEvent("host-a", OPENED, moment_text(now), {}, about)

    def take(connection):
        row = find_automation(connection, automation)
        assert row is not None
        take_event(connection, WaitingRuns(connection), row, occasion, now)

    await desk.world.context.database.write(take)


async def test_a_later_push_into_a_run_that_waits_moves_its_check(desk: Desk) -> None:
    bystander = await desk.world.create()
    trigger = {"type": "host-a", "config": {"event": OPENED}}
    automation = await desk.waiting(triggers=[trigger], debounce_seconds=5)
    for sha in (SHA, SHA_2):
        await event(desk, automation, sha)
        desk.clock.pass_by(seconds=30)
        await desk.runner.turn()
        await tried(desk)
    await make_room(desk, bystander)
    begun = await started(desk, automation)
    assert await desk.report(begun)
    await desk.told()
    ends = {run["head_sha"]: run["conclusion"] for run in desk.source_host.runs.values()}
    assert ends == {SHA: "cancelled", SHA_2: "success"}


async def test_a_trigger_may_do_without_checks(desk: Desk) -> None:
    trigger = {"type": "host-a", "config": {"event": OPENED, "check": False}}
    automation = await desk.waiting(triggers=[trigger])
    await event(desk, automation, SHA)
    await desk.runner.turn()
    begun = await started(desk, automation)
    assert await desk.check_of(begun) is None
    assert not desk.source_host.asked


async def test_a_host_that_is_lost_while_a_run_waits_does_not_move_its_check(desk: Desk) -> None:
    bystander = await desk.world.create()
    automation = await desk.waiting()
    desk.source_host.heads[7] = SHA
    waiting = await desk.trigger(automation, sha=None)
    assert (await desk.check_of(waiting))["head_sha"] == SHA
    desk.source_host.heads.clear()
    await make_room(desk, bystander)
    begun = await started(desk, automation)
    assert await desk.report(begun)
    await desk.told()
    assert desk.source_host.only_run()["conclusion"] == "success"
