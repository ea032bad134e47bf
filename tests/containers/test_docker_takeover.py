"""Two services over one database and one container engine: one takes the other's replicas over."""

from pathlib import Path

import pytest

from tests.containers.daemons import Daemon, left
from tests.containers.takeovers import asleep, paired, works_on
from tests.support.git import make_repository
from tests.support.postgresql import Server

pytestmark = pytest.mark.long


async def test_a_sleeping_replica_of_a_killed_service_is_woken(
    engine: Daemon, postgresql: Server, tmp_path: Path
) -> None:
    async with paired(postgresql, engine.address, engine.host) as pair:
        id, before = await asleep(pair, make_repository(tmp_path / "shop"))
        await works_on(pair, id, before)
        assert (await pair.second.client.delete(f"/v1/replica/{id}")).status_code == 200
    assert left(engine) == []
