"""Several replicas at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.git import make_repository
from tests.support.installation import Follower, Installation, block, command_of, megabytes
from tests.support.waiting import until

pytestmark = pytest.mark.long

COUNT = 6
ENGINE_MEGABYTES = 45


def test_several_replicas_at_once(own: Installation) -> None:
    environment = own.environment_with(own.connect(str(make_repository(own.base / "shop"))))
    with ThreadPoolExecutor(COUNT) as pool:
        made = list(pool.map(lambda _: own.create(environment), range(COUNT)))
        assert own.get(f"/v1/replica?status=active&limit={COUNT}")["total"] == COUNT
        sizes = {id: megabytes(own.engine(id)) for id in made}
        assert max(sizes.values()) <= ENGINE_MEGABYTES, sizes
        follower = Follower(own, made[0])
        ends = list(pool.map(lambda id: own.turn(id, block("cat README")), made))
        assert {end["stopReason"] for end in ends} == {"end_turn"}
        assert all(own.said(id) == [block("cat README")] for id in made)
        until(lambda: follower.has("chat.turn.completed", isComplete=True), "the turn's end")
        follower.end()
        born = [pid for id in made for pid in own.processes(id)]
        assert len([pid for pid in born if "quarterdeck.engine" in command_of(pid)]) >= COUNT
        list(pool.map(own.delete, made))
    own.check_gone(*made)
    assert list(own.home.workspaces.iterdir()) == []
    assert own.get("/v1/replica")["total"] == 0
