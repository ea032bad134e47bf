"""From asking for a replica to `active`, when a prepared workspace waits for it."""

import asyncio
import statistics
import time
from typing import Any

import httpx

from quarterdeck.local.home import Home
from tests.bench.installation import Installation
from tests.bench.table import Row

CLAIMS = 5
LIMIT_MS = 300


def pool_rows(made: Installation) -> list[Row]:
    """Claims of prepared workspaces, one after another, each from a full pool."""
    taken = asyncio.run(_measure(Home(made.home), str(made.repository)))
    note = f"median of {len(taken)}, worst {max(taken) * 1000:.0f} ms"
    value = statistics.median(taken) * 1000
    return [Row("warm pool: claim to active", value, "ms", LIMIT_MS, note)]


async def _measure(home: Home, repository: str) -> list[float]:
    async with httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(home.socket)),
        base_url="http://bench",
        headers={"Authorization": f"Bearer {home.key.read_text().strip()}"},
        timeout=60,
    ) as client:
        connected = await _call(client, "POST", "/v1/replica/repositories", {"url": repository})
        body = {"name": "warm", "repository_id": connected["repository"]["id"]}
        made = await _call(client, "POST", "/v1/environments", body)
        environment = made["environment"]["id"]
        pool = f"/v1/environments/{environment}/warm-pools"
        await _call(client, "PUT", pool, {"enabled": True})
        taken = [await _claim(client, environment, f"r{n}") for n in range(CLAIMS)]
        await _call(client, "PUT", pool, {"enabled": False})
        return taken


async def _claim(client: httpx.AsyncClient, environment: str, name: str) -> float:
    hooks = f"/v1/environments/{environment}/warm-hooks"
    while (await _call(client, "GET", hooks))["warm_pool"]["ready_count"] < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    await asyncio.sleep(2)  # what made it ready has come to rest
    begun = time.perf_counter()
    made = await _call(client, "POST", "/v1/replica", {"name": name, "environment_id": environment})
    path = f"/v1/replica/{made['replica']['id']}"
    while (await _call(client, "GET", path))["replica"]["status"] != "active":  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    taken = time.perf_counter() - begun
    await _call(client, "DELETE", path)
    return taken


async def _call(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await client.request(method, path, json=body)
    assert answer.is_success, (path, answer.text)
    return answer.json()
