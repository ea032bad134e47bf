"""Two services over one database and a Swarm of two nodes: one takes the other's replicas over."""

from pathlib import Path

import pytest

from tests.containers.losses import wake
from tests.containers.swarms import Swarm
from tests.containers.takeovers import Pair, asleep, paired, works_on
from tests.support.git import make_repository
from tests.support.postgresql import Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.long


async def asleep_on_worker(pair: Pair, swarm: Swarm, repository: Path) -> tuple[str, str]:
    """As `asleep`; its files are on the worker."""
    swarm.set_availability(swarm.manager, "drain")
    try:
        return await asleep(pair, repository)
    finally:
        swarm.set_availability(swarm.manager, "active")


async def test_a_sleeping_replica_of_a_killed_service_is_woken_where_its_files_are(
    swarm: Swarm, postgresql: Server, tmp_path: Path
) -> None:
    address = swarm.manager.address
    async with paired(postgresql, address, swarm.host, swarm=True) as pair:
        id, before = await asleep_on_worker(pair, swarm, make_repository(tmp_path / "shop"))
        second = pair.second
        # Not on another node, which would have no files.
        swarm.set_availability(swarm.worker, "drain")
        answer = await second.client.post(f"/v1/replica/{id}/wake")
        assert answer.status_code == 502, answer.text
        assert f"saves/{id}.git in the directory of that service" in answer.text
        swarm.set_availability(swarm.worker, "active")
        assert second.service.leases is not None
        assert await second.service.leases.take_stopped(id) is None
        assert swarm.running(id) == []
        unsaved = await second.client.get(f"/v1/replica/{id}/canvas/plan.md")
        assert unsaved.status_code == 409 and "it was taken over" in unsaved.text, unsaved.text
        packed = await second.client.post(f"/v1/replica/{id}/archive")
        assert packed.status_code == 409, packed.text
        queued = {"filename": "plan.md"}
        file = {"file": ("plan.md", b"another plan")}
        base = f"/v1/replica/{id}/canvas"
        uploaded = await second.client.post(base, data=queued, files=file)
        assert uploaded.status_code == 202, uploaded.text
        swarm.set_availability(swarm.worker, "drain")
        await second.post(f"/v1/replica/{id}/wake", status=202)
        error = (await second.reach(id, "error"))["error"]
        assert "files is missing or out of reach" in error
        swarm.set_availability(swarm.worker, "active")
        await wake(second, id)
        assert swarm.running(id) == [swarm.worker.namespace]
        await works_on(pair, id, before)
        assert swarm.running(id) == []
        assert (await second.client.delete(f"/v1/replica/{id}")).status_code == 200
    assert swarm.get("/services") == []


async def test_a_lost_volume_is_not_replaced_by_an_empty_one(
    swarm: Swarm, postgresql: Server, tmp_path: Path
) -> None:
    address = swarm.manager.address
    async with paired(postgresql, address, swarm.host, swarm=True) as pair:
        id, _ = await asleep_on_worker(pair, swarm, make_repository(tmp_path / "shop"))
        with swarm.worker.client() as client:

            def removed() -> bool:  # the ended container keeps it for a moment
                return client.delete(f"/volumes/qd-{id}").status_code == 204

            await eventually(removed, "the removal of the volume")
        second = pair.second
        await second.post(f"/v1/replica/{id}/wake", status=202)
        error = (await second.reach(id, "error"))["error"]
        assert "missing on this node" in error and f"saves/{id}.git" in error
        assert (await second.client.delete(f"/v1/replica/{id}")).status_code == 200
    assert swarm.get("/services") == []
