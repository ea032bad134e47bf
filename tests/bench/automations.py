"""What schedules cost while they wait, how late a fire starts, and how a burst is taken."""

import asyncio
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from quarterdeck.local.home import Home
from tests.bench.installation import Installation
from tests.bench.plain_caller import post_all
from tests.bench.table import Row, cpu_seconds

SCHEDULES = 10_000
IDLE_SECONDS = 20.0
BURST = 1_000
AT_ONCE = 16
"""Connections of the caller."""
WAIT_SECONDS = 90.0


def automation_rows(made: Installation) -> list[Row]:
    """10,000 schedules that wait, one that comes, then 1,000 calls of one webhook."""
    return asyncio.run(_measure(Home(made.home)))


async def _measure(home: Home) -> list[Row]:
    transport = httpx.AsyncHTTPTransport(uds=str(home.socket), limits=httpx.Limits())
    headers = {"Authorization": f"Bearer {home.key.read_text().strip()}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bench", headers=headers, timeout=WAIT_SECONDS
    ) as client:
        answer = await client.get("/v1/environments/global")
        environment = answer.json()["environment"]["id"]
        first = await _create(client, environment, _cron(datetime.now(UTC) + timedelta(hours=20)))
        _fill(home, first["id"])
        idle = await _idle(home)
        late = await _late(client, environment)
        slowest, runs = await _burst(home, client, environment)
    note = f"{SCHEDULES:,} schedules that wait, {IDLE_SECONDS:.0f} s"
    return [
        Row("schedules: idle, processor", idle * 100, "%", 1, note),
        Row("schedules: a fire until its run is being made", late, "s", 1, "seen by a stream"),
        Row(
            "webhook: slowest answer",
            slowest * 1000,
            "ms",
            100,
            f"{BURST:,} calls, {AT_ONCE} at once",
        ),
        Row("webhook: runs of the burst", runs, "", 1, "debounce of 30 s"),
    ]


async def _create(
    client: httpx.AsyncClient, environment: str, trigger: dict[str, Any], **more: Any
) -> dict[str, Any]:
    body = {"name": "bench", "prompt": "Nothing.", "environment_id": environment, **more}
    answer = await client.post("/v1/automations", json={**body, "triggers": [trigger]})
    assert answer.status_code == 201, answer.text
    return answer.json()["automation"]


def _cron(moment: datetime) -> dict[str, Any]:
    schedule = f"{moment.minute} {moment.hour} {moment.day} {moment.month} *"
    return {"type": "cron", "config": {"schedule": schedule}}


def _fill(home: Home, pattern: str) -> None:
    """Copies of one automation, behind the service's back: requests would take a minute."""
    with sqlite3.connect(home.database, timeout=60) as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(automations)")]
        others = ", ".join(f'"{name}"' for name in names if name != "id")
        database.executemany(
            f"INSERT INTO automations (id, {others}) SELECT ?, {others} FROM automations WHERE id = ?",
            ((f"00000000-0000-4000-8000-{n:012}", pattern) for n in range(SCHEDULES)),
        )


async def _idle(home: Home) -> float:
    pid = int(home.lock.read_text())
    await asyncio.sleep(1)
    before, begun = cpu_seconds(pid), time.perf_counter()
    await asyncio.sleep(IDLE_SECONDS)
    return (cpu_seconds(pid) - before) / (time.perf_counter() - begun)


async def _late(client: httpx.AsyncClient, environment: str) -> float:
    """Seconds from a moment of a schedule until its run has a workspace."""
    come = (datetime.now(UTC) + timedelta(seconds=75)).replace(second=0, microsecond=0)
    made = await _create(client, environment, _cron(come))
    async with asyncio.timeout(WAIT_SECONDS):
        async with client.stream("GET", "/v1/automations/events") as stream:
            late = None
            async for line in stream.aiter_lines():
                if made["id"] in line and '"status":"creating"' in line:
                    late = (datetime.now(UTC) - come).total_seconds()
                # What is measured next is not to share the machine with the making of a replica.
                if late is not None and made["id"] in line and '"status":"completed"' in line:
                    return late
    raise AssertionError("the schedule did not fire")


async def _burst(home: Home, client: httpx.AsyncClient, environment: str) -> tuple[float, int]:
    """The slowest answer in seconds, and how many runs there are then."""
    trigger = {"type": "custom", "config": {}}
    made = await _create(client, environment, trigger, debounce_seconds=30)
    path = f"/v1/automations/webhook/{made['webhook_token']}"
    bodies = [f'{{"number":{number}}}'.encode() for number in range(BURST)]
    taken = await post_all(home.socket, path, bodies, AT_ONCE)
    assert len(taken) == BURST
    answer = await client.get(f"/v1/automations/{made['id']}/executions")
    return max(taken), answer.json()["total"]
