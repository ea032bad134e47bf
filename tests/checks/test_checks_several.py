"""Two services over one database: a check is told by one at a time, whoever that is."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from quarterdeck.service.checks.sync_worker import CheckSender, CheckSettings
from tests.checks.desk import SHA, Desk
from tests.conftest import DATABASES
from tests.support.waiting import eventually


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


def another(desk: Desk) -> CheckSender:
    """The sender of another home's service."""
    context = replace(desk.world.context, home_id=str(uuid4()))
    return CheckSender(context, CheckSettings())


async def asked(desk: Desk, count: int) -> None:
    async def there() -> bool:
        return len(desk.source_host.asked) >= count

    await eventually(there, f"{count} requests")


async def test_another_service_leaves_a_check_that_is_being_told_alone(desk: Desk) -> None:
    other = another(desk)
    begun = await desk.trigger(await desk.waiting())
    desk.source_host.gate.clear()
    assert await desk.report(begun, conclusion="failure", title="Torn")
    telling = asyncio.create_task(desk.told())
    await asked(desk, 2)
    assert await desk.report(begun, title="Mended")
    await other.turn()
    assert len(desk.source_host.asked) == 2
    desk.source_host.gate.set()
    await telling
    await other.turn()
    said = [one.body["output"]["title"] for one in desk.source_host.asked[1:]]
    assert said == ["Torn", "Mended"]
    await other.close()


async def test_another_service_takes_up_what_is_due(desk: Desk) -> None:
    other = another(desk)
    begun = await desk.trigger(await desk.waiting())
    assert await desk.report(begun)
    await other.turn()
    assert desk.source_host.only_run()["conclusion"] == "success"
    await desk.told()
    assert len(desk.source_host.asked) == 2
    await other.close()


async def test_one_status_of_host_b_is_not_written_by_two_at_a_time(desk: Desk) -> None:
    desk.use("host_b")
    other = another(desk)
    desk.set_limits(opening=0.05)
    automation = await desk.waiting()
    desk.source_host.gate.clear()
    await desk.trigger(automation)
    later = await desk.trigger(automation)
    assert await desk.report(later)
    await other.turn()
    assert len(desk.source_host.asked) == 1
    desk.source_host.gate.set()
    await desk.told()
    await desk.told(seconds=6)
    assert {sha: one["status"] for (_, sha, _), one in desk.source_host.statuses.items()} == {
        SHA: "success"
    }
    await other.close()
