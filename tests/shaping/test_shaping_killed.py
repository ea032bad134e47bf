"""`kill -9` in the midst of hooks, claims, hook tests and the filling of pools."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.shaping.killing import (
    START,
    Background,
    Shaped,
    check_whole,
    eventually,
    home_of,
    hooks_running,
    let_go,
    on_disk,
    ran,
    until_gone,
    until_ran,
    waiting_hook,
)
from tests.support.git import make_repository
from tests.support.installation import Follower, Installation, block, runs
from tests.support.waiting import until
from tests.system.conftest import installed

pytestmark = pytest.mark.long

MESSAGE = block("echo said >> ~/said")


@pytest.fixture(scope="module")
def _deck() -> Iterator[Installation]:
    with installed() as made:
        made.start()
        yield made


@pytest.fixture
def deck(_deck: Installation, require_tool: Callable[[str], str]) -> Installation:
    require_tool("bwrap")
    require_tool("git")
    _deck.revive()
    return _deck


@pytest.fixture(scope="module")
def _pool(_deck: Installation) -> Iterator[Shaped]:
    repository = _deck.connect(str(make_repository(_deck.base / "shop")))
    made = Shaped.make(_deck, repository, warm="echo warm >> ~/ran", start=START)
    made.switch(True)
    yield made
    _deck.revive()
    made.empty()


@pytest.fixture
def pool(deck: Installation, _pool: Shaped) -> Shaped:
    """An environment with a repository, a hook of each kind, and a pool."""
    return _pool


def restart(deck: Installation) -> None:
    deck.kill()
    deck.start()


def check_ran_once(deck: Installation, id: str, name: str) -> None:
    """It is its owner's: each hook and the message ran once, and its branch has its name."""
    deck.reach(id, "active")
    until(lambda: deck.results(id), "the end of the message")
    assert deck.said(id) == [MESSAGE]
    assert (home_of(deck, id) / "said").read_text() == "said\n"
    assert ran(deck, id) == ["warm", "start"]
    logs = deck.get(f"/v1/replica/{id}/hooks")
    assert [len(logs[f"{kind}_hooks"]["logs"]) for kind in ("warm", "start")] == [1, 1]
    assert branch(deck, id) == f"qd/{name}"


def branch(deck: Installation, id: str) -> str:
    return deck.run(id, "git -C /workspace/shop branch --show-current")["output"].strip()


def claim(pool: Shaped, name: str) -> str:
    """Makes a replica of the next one in the pool."""
    wanted = pool.filled()[0]
    assert pool.deck.create(pool.environment, wait=False, name=name, message=MESSAGE) == wanted
    return wanted


def stopped_engine(pool: Shaped) -> int:
    """The engine that is claimed next; it answers nothing."""
    engine = pool.deck.engine(pool.filled()[0])
    os.kill(engine, signal.SIGSTOP)
    return engine


def test_the_service_is_killed_in_a_warm_and_in_a_start_hook(deck: Installation) -> None:
    shaped = Shaped.make(deck, warm=waiting_hook("warm"), start=waiting_hook("start"))
    id = deck.create(shaped.environment, wait=False, message=MESSAGE)
    follower = Follower(deck, id)
    until_ran(deck, id, "warm")
    restart(deck)
    assert deck.replica(id)["status"] == "preparing"
    deck.kill()
    let_go(deck, id, "warm")
    until_ran(deck, id, "warm", "start")  # without a service
    deck.start()
    assert deck.replica(id)["status"] == "preparing"
    restart(deck)
    let_go(deck, id, "start")
    deck.reach(id, "active")
    until(lambda: deck.results(id), "the end of the message")
    assert deck.said(id) == [MESSAGE]
    assert ran(deck, id) == ["warm", "start"]
    logs = deck.get(f"/v1/replica/{id}/hooks")
    assert [len(logs[f"{kind}_hooks"]["logs"]) for kind in ("warm", "start")] == [1, 1]
    check_whole(deck, id, follower)
    deck.delete(id)
    deck.check_gone(id)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03])
def test_the_service_is_killed_around_a_claim(pool: Shaped, delay: float) -> None:
    deck, held, name = pool.deck, pool.filled(), f"around{delay}"
    body = {"name": name, "environment_id": pool.environment, "message": MESSAGE}
    asked = Background(deck, "/v1/replica", body)
    time.sleep(delay)  # where in the claim it dies is the point
    deck.kill()
    answer = asked.end()
    deck.start()
    made = [one["id"] for one in deck.get("/v1/replica")["replicas"] if one["name"] == name]
    if not made:
        assert answer is None, "a replica that was answered is lost"
        made = [deck.post("/v1/replica", body, 201)["replica"]["id"]]
    assert made == [held[0]]
    check_ran_once(deck, made[0], name)
    left = pool.filled()
    assert held[1] == left[0]
    assert made[0] not in left
    deck.delete(made[0])


def test_the_service_is_killed_while_the_engine_is_told_and_in_its_start_hook(
    pool: Shaped,
) -> None:
    deck, engine = pool.deck, stopped_engine(pool)
    stay = home_of(deck, pool.filled()[0]) / "stay"
    stay.touch()
    id = claim(pool, "told")
    deck.kill()
    os.kill(engine, signal.SIGCONT)
    deck.start()
    until_ran(deck, id, "warm", "start")
    restart(deck)
    assert deck.replica(id)["status"] == "preparing"
    stay.unlink()
    check_ran_once(deck, id, "told")
    assert deck.engine(id) == engine
    deck.delete(id)


@pytest.mark.parametrize("also_the_service", [False, True])
def test_the_engine_is_killed_in_a_claim(pool: Shaped, also_the_service: bool) -> None:
    deck, engine = pool.deck, stopped_engine(pool)
    name = f"claimed-{also_the_service}"
    id = claim(pool, name)
    if also_the_service:
        deck.kill()
    os.kill(engine, signal.SIGKILL)
    until(lambda: not runs(engine), "the engine's end")
    if also_the_service:
        deck.start()
    check_ran_once(deck, id, name)
    deck.delete(id)


def test_the_engine_is_killed_in_the_start_hook_after_a_claim(pool: Shaped) -> None:
    deck = pool.deck
    stay = home_of(deck, pool.filled()[0]) / "stay"
    stay.touch()
    id = claim(pool, "rehooked")
    until_ran(deck, id, "warm", "start")
    os.kill(deck.engine(id), signal.SIGKILL)
    until_ran(deck, id, "warm", "start", "start")  # the one cut off begins again
    assert hooks_running(deck, id) == 1
    stay.unlink()
    deck.reach(id, "active")
    until(lambda: deck.results(id), "the end of the message")
    assert deck.said(id) == [MESSAGE]
    assert ran(deck, id) == ["warm", "start", "start"]
    assert branch(deck, id) == "qd/rehooked"
    deck.delete(id)


def test_the_agent_is_killed_in_the_first_message_after_a_claim(pool: Shaped) -> None:
    deck = pool.deck
    id = pool.filled()[0]
    message = block("echo said >> ~/said; sleep 1000")
    assert deck.create(pool.environment, wait=False, name="agent", message=message) == id
    follower = Follower(deck, id)
    until(lambda: (home_of(deck, id) / "said").exists(), "the message")
    later = deck.send(id, block("echo later >> ~/said"))
    (agent,) = deck.agents(id)
    os.kill(agent, signal.SIGKILL)
    assert deck.result(id, later["message_id"])["stopReason"] == "end_turn"
    first, last = (ends for ends in deck.results(id).values())
    assert [one["stopReason"] for one in (*first, *last)] == ["failed", "end_turn"]
    assert (home_of(deck, id) / "said").read_text() == "said\nlater\n"
    assert deck.said(id) == [message, block("echo later >> ~/said")]
    assert deck.replica(id)["status"] == "active"
    check_whole(deck, id, follower)
    deck.delete(id)
    deck.check_gone(id)


@pytest.mark.parametrize(
    "kind", ["warm-hooks/test", "warm-hooks/save-test", "start-hooks/test/stream"]
)
def test_the_service_is_killed_in_a_hook_test(deck: Installation, kind: str) -> None:
    shaped = Shaped.make(deck)
    path = f"/v1/environments/{shaped.environment}/{kind}"
    asked = Background(deck, path, {"content": waiting_hook("tested")})
    (id,) = until(lambda: [one for one in on_disk(deck) if ran(deck, one) == ["tested"]], "a test")
    deck.kill()
    assert asked.end() is None
    assert deck.place(id).exists()
    deck.start()
    until_gone(deck, id)
    hooks = deck.get(f"/v1/environments/{shaped.environment}/warm-hooks")
    assert hooks["warm_hook"] is None, "a hook is in force whose test never ended"


def test_the_service_is_killed_while_a_pool_is_filled(deck: Installation) -> None:
    shaped = Shaped.make(deck, warm=waiting_hook("warm"))
    shaped.switch(True)
    held = until(lambda: len(found := shaped.pooled()) == 2 and found, "workspaces")
    for id in held:
        until_ran(deck, id, "warm")
    restart(deck)
    assert shaped.pooled() == held
    deck.kill()
    for id in held:
        let_go(deck, id, "warm")
    deck.start()
    assert shaped.filled() == held
    assert [ran(deck, id) for id in held] == [["warm"], ["warm"]]
    shaped.empty()


def test_the_service_is_killed_wherever_pools_are_replaced(pool: Shaped) -> None:
    deck, shaped = pool.deck, Shaped.make(pool.deck)
    shaped.switch(True)
    for delay in (0.0, 0.05, 0.2):
        shaped.save("warm", f"echo {delay} > ~/ran")
        time.sleep(delay)  # where in making and removing it dies is the point
        restart(deck)
    held = shaped.filled()
    assert [ran(deck, id) for id in held] == [["0.2"], ["0.2"]]
    eventually(deck, lambda: {*held, *pool.pooled()})
    shaped.empty()
