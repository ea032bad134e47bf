"""Several sandbox drivers: a replica keeps the one that made it."""

from datetime import UTC, datetime

import pytest

from quarterdeck.sandboxes.port import Absence
from tests.fleet.conftest import World
from tests.fleet.doubles import DoubleDriver
from tests.support.waiting import eventually

pytestmark = [pytest.mark.one_database, pytest.mark.long]


async def test_a_replica_keeps_the_driver_that_made_it(world: World) -> None:
    earlier = await world.create()
    await world.stop()
    elsewhere = DoubleDriver(world.home.root / "elsewhere")
    world.others = {"docker": elsewhere}
    await world.start()
    try:
        later = await world.create()
        assert not world.driver.running(later) and elsewhere.running(later)
        assert world.driver.running(earlier) and not elsewhere.running(earlier)
        for id in (earlier, later):
            assert (await world.post(id, "/sleep")).status_code == 200
        assert (world.driver.calls["stop"], elsewhere.calls["stop"]) == (1, 1)
        # A machine's start says nothing about engines that run elsewhere.
        await world.post(later, "/wake")
        await world.reach(later, "active")
        rows = {id: await world.context.workspace(id) for id in (earlier, later)}
        assert [row.boot_id and row.driver for row in rows.values() if row] == ["process", None]
        assert (await world.client.delete(f"/v1/replica/{earlier}")).status_code == 200
        assert (await world.client.delete(f"/v1/replica/{later}")).status_code == 200
        assert (world.driver.calls["destroy"], elsewhere.calls["destroy"]) == (1, 1)
    finally:
        elsewhere.kill_all()


async def test_a_replica_of_a_driver_that_is_not_configured_says_so(world: World) -> None:
    await world.stop()
    elsewhere = DoubleDriver(world.home.root / "elsewhere")
    world.others = {"docker": elsewhere}
    await world.start()
    try:
        id = await world.create()
        await world.stop()
        world.others = {}
        await world.start()
        replica = await world.reach(id, "error")
        assert 'Set driver = "docker" in [sandboxes]' in replica["error"]
        elsewhere.kill_all()
        await world.stop()
        world.others = {"docker": elsewhere}
        await world.start()
        await world.post(id, "/wake")
        await world.reach(id, "active")
        assert elsewhere.running(id)
    finally:
        elsewhere.kill_all()


async def test_replicas_wait_for_what_runs_them(world: World) -> None:
    earlier = await world.create()
    await world.stop()
    elsewhere = DoubleDriver(world.home.root / "elsewhere")
    world.others = {"docker": elsewhere}
    await world.start()
    try:
        later = await world.create()
        await world.stop()
        elsewhere.kill_all()
        elsewhere.away = Absence(datetime.now(UTC), "It does not answer.")
        await world.start()
        shown = (await world.client.get(f"/v1/replica/{later}")).json()["replica"]
        assert shown["status"] == "active"
        assert shown["unreachable_reason"] == "It does not answer."
        listed = (await world.client.get("/v1/replica")).json()["replicas"]
        reasons = {one["id"]: one["unreachable_reason"] for one in listed}
        assert reasons == {later: "It does not answer.", earlier: None}
        body = {"name": "refused", "environment_id": world.environment}
        refused = await world.client.post("/v1/replica", json=body)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert refused.json()["error"] == "It does not answer."
        elsewhere.away = None
        await world.reach(later, "active")
        await eventually(lambda: elsewhere.running(later), "its engine")
    finally:
        elsewhere.kill_all()
