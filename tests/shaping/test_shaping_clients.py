"""The client and `qd` on hooks, their tests and pools, against a real service."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator

import pytest

from quarterdeck.client import LOCAL_URL, Client, HttpConnection
from quarterdeck.client.errors import ConflictError
from tests.shaping.conftest import Shop
from tests.support import forked


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[Client]:
    connection = HttpConnection(
        LOCAL_URL, shop.home.key.read_text().strip(), socket=shop.home.socket
    )
    async with Client(connection) as opened:
        yield opened


async def qd(shop: Shop, *words: str, says: str = "") -> tuple[int, str, str]:
    ended = await asyncio.to_thread(
        forked.run,
        (sys.executable, "-P", "-m", "quarterdeck", *words),
        input=says,
        text=True,
        env={**os.environ, "QUARTERDECK_HOME": str(shop.home.root)},
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.long
async def test_the_client_tests_hooks_and_reads_their_logs(shop: Shop, client: Client) -> None:
    environment = await shop.environment()
    test = await client.hook_tests.warm(environment, "echo hello; exit 3")
    assert (test.exit_code, test.output, test.timed_out) == (3, "hello\n", False)
    saved = await client.hook_tests.save_warm(environment, "echo warmed")
    assert saved.warm_hook.is_active
    assert (await client.hook_tests.start(environment, "true")).exit_code == 0
    for stream in (client.hook_tests.stream_warm, client.hook_tests.stream_start):
        told = [event async for event in stream(environment, "echo on")]
        assert [event.type for event in told][-1] == "complete"
        assert "on\n" in [event.output for event in told if event.type == "output"]
    with pytest.raises(ConflictError):
        await _broken(shop, client)
    made = await shop.make(environment)
    logs = await client.hook_logs.read(made)
    assert logs.warm_hooks.logs[0].output == "warmed\n"


async def _broken(shop: Shop, client: Client) -> None:
    environment = await shop.environment()
    await shop.hook(environment, "warm", "exit 1")
    await client.hook_tests.start(environment, "true")


@pytest.mark.long
async def test_the_client_switches_pools(shop: Shop, client: Client) -> None:
    environment = await shop.environment()
    pool = await client.warm_pools.switch(environment, True)
    await shop.pool_until(environment, ready_count=2)
    assert {one.state for one in await client.warm_pools.workspaces(pool.id)} == {"ready"}
    assert not (await client.warm_pools.switch(environment, False)).enabled


@pytest.mark.long
async def test_qd_on_hooks_and_pools(shop: Shop) -> None:
    environment = await shop.environment()
    status, out, said = await qd(shop, "env", "test", "e1", "warm", "--from", "-", says="echo hi")
    assert (status, out) == (0, "hi\n"), said
    status, out, _ = await qd(
        shop, "env", "test", "e1", "warm", "--from", "-", "--save", "--json", says="echo no; exit 9"
    )
    assert status == 1
    assert json.loads(out) == {"test": {"exit_code": 9, "output": "no\n", "timed_out": False}}
    assert (await qd(shop, "env", "test", "e1", "start", "--save"))[0] == 2
    assert (await qd(shop, "env", "test", "e1", "start"))[0] == 1  # nothing is in force

    await shop.hook(environment, "warm", "echo from the hook")
    await shop.make(environment)
    status, out, said = await qd(shop, "replica", "hooks", "r2")
    assert (status, out) == (0, "from the hook\n")
    assert "warm e1: exit status 0" in said
    status, out, _ = await qd(shop, "replica", "hooks", "r2", "--json")
    assert json.loads(out)["warm_hooks"]["logs"][0]["hookName"] == "e1"

    status, _, said = await qd(shop, "env", "pool", "e1")
    assert "No warm pool." in said
    status, out, _ = await qd(shop, "env", "pool", "e1", "on", "--json")
    assert json.loads(out)["warm_pool"]["enabled"] is True
    status, _, said = await qd(shop, "env", "pool", "e1", "off")
    assert (status, "The warm pool is off." in said) == (0, True)
