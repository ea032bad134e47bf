"""The database's server is away for a while, and comes back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import httpx
import pytest

from quarterdeck.local.home import Home
from tests.fleet.conftest import SETTINGS, World
from tests.fleet.doubles import DoubleDriver
from tests.support.postgresql import Server, find_programs, running
from tests.support.waiting import eventually

# Everything that runs by itself does so all the time.
QUICK = replace(SETTINGS, upkeep_interval=0.02, pool_interval=0.02, heartbeat=0.02)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of the test's own, to be stopped."""
    programs = find_programs()
    if programs is None:
        pytest.skip("postgresql is not installed")
    with running(programs) as made:
        yield made


@pytest.fixture
async def world(home: Home, server: Server) -> AsyncIterator[World]:
    made = World(home, DoubleDriver(home.workspaces), QUICK, server.url(server.create()))
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
        made.driver.kill_all()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the service has logged beside what it always says."""
    told = [one for one in caplog.records if one.name.startswith("quarterdeck")]
    return [one.getMessage() for one in told if one.levelno > logging.INFO]


def unavailable(answer: httpx.Response, server: Server) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "SERVICE_UNAVAILABLE"
    assert int(answer.headers["retry-after"]) > 0
    for told in (str(server.base), "5432", "socket", "psycopg", "connection"):
        assert told not in answer.text


async def works(world: World) -> bool:
    return (await world.client.get("/v1/replica")).status_code == 200


@pytest.mark.long
async def test_what_is_told_while_it_is_away(
    world: World, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    made = await world.create()
    caplog.clear()
    await asyncio.to_thread(server.stop)
    asked = [
        ("GET", "/v1/replica", None),
        ("GET", f"/v1/replica/{made}", None),
        ("GET", f"/v1/replica/{made}/events", None),
        ("POST", f"/v1/replica/{made}/messages", {"message": "x"}),
        ("POST", "/v1/replica", {"name": "x", "environment_id": world.environment}),
        ("GET", "/v1/environments", None),
    ]
    for _ in range(5):
        for method, path, body in asked:
            unavailable(await world.client.request(method, path, json=body), server)
        stranger = {"Authorization": "Bearer sk_unknown"}
        unavailable(await world.client.get("/v1/replica", headers=stranger), server)
        health = await world.client.get("/v1/health")
        unavailable(health, server)
        assert health.json()["status"] == "unavailable"
    (lost,) = lines(caplog)
    assert "cannot be reached" in lost
    assert not [one for one in caplog.records if one.exc_info]
    caplog.clear()
    await asyncio.to_thread(server.start)
    await eventually(lambda: works(world), "the database")
    health = await world.client.get("/v1/health")
    assert (health.status_code, health.json()["status"]) == (200, "ok")
    (back,) = lines(caplog)
    assert "reached again" in back
    assert (await world.get(made))["status"] == "active"
    sent = await world.send(made, "after it")
    assert len(await world.done(made, sent["message_id"])) == 1


async def test_typing_and_commands_go_on(world: World, server: Server) -> None:
    made = await world.create()
    size = {"cols": 80, "rows": 24}
    session = (await world.post(made, "/terminal/sessions", size)).json()["session"]["id"]

    async def type(sequence: int) -> int:
        body = {"data": "x", "generation": 0, "sequence": sequence}
        path = f"/terminal/sessions/{session}/input"
        return (await world.post(made, path, body)).status_code

    assert await type(0) == 200
    await asyncio.to_thread(server.stop)
    for sequence in range(1, 20):
        assert await type(sequence) == 200
    done = await world.post(made, "/exec", {"command": "echo there"})
    assert (done.status_code, done.json()["output"]) == (200, "there\n")
    unavailable(await world.client.get(f"/v1/replica/{made}"), server)
    await asyncio.to_thread(server.start)
    await eventually(lambda: works(world), "the database")
    assert await type(20) == 200
