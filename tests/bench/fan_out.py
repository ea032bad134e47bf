"""One event to a hundred clients."""

import asyncio
import json
import statistics
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx

from quarterdeck.local.home import Home
from tests.bench.installation import Installation
from tests.bench.table import Row

CLIENTS = 100
EVENTS = 40
LIMIT_MS = 50


def fan_out_rows(made: Installation) -> list[Row]:
    """From an event's time stamp until the last client has it."""
    made.qd("replica", "create", "--name", "heard", "--wait")
    replica = made.json("replica", "show", "heard")["replica"]
    latest = asyncio.run(_measure(Home(made.home), replica["id"], replica["chats"][0]["id"]))
    note = f"median of {len(latest)} events, worst {max(latest) * 1000:.0f} ms"
    value = statistics.median(latest) * 1000
    return [Row(f"event: to the last of {CLIENTS} clients", value, "ms", LIMIT_MS, note)]


@dataclass
class _Heard:
    """When which client had an event, by the event's id; `all` is set when every one had it."""

    times: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    all: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, id: str, seconds: float) -> None:
        times = self.times.setdefault(id, [])
        times.append(seconds)
        if len(times) == CLIENTS:
            self.all.set()


async def _measure(home: Home, replica: str, chat: str) -> list[float]:
    heard = _Heard()
    ready = asyncio.Semaphore(0)
    key = home.key.read_text().strip()
    tasks = [
        asyncio.create_task(_listen(home.socket, key, replica, heard, ready))
        for _ in range(CLIENTS)
    ]
    for _ in range(CLIENTS):
        await ready.acquire()
    async with httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(home.socket)),
        base_url="http://bench",
        headers={"Authorization": f"Bearer {key}"},
    ) as client:
        for n in range(EVENTS):
            heard.all.clear()
            answer = await client.patch(
                f"/v1/replica/{replica}/chats/{chat}", json={"display_name": f"name {n}"}
            )
            assert answer.status_code == 200, answer.text
            await heard.all.wait()
            await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return [max(times) for times in heard.times.values() if len(times) == CLIENTS]


async def _listen(
    socket: Path, key: str, replica: str, heard: _Heard, ready: asyncio.Semaphore
) -> None:
    reader, writer = await asyncio.open_unix_connection(str(socket), limit=1 << 20)
    writer.write(
        f"GET /v1/replica/{replica}/events HTTP/1.1\r\nHost: bench\r\n"
        f"Authorization: Bearer {key}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n", 1)[0], head
    ready.release()
    while line := await reader.readline():
        if line.startswith(b"data:"):
            now = time.time()
            event = json.loads(line[5:])
            told = datetime.fromisoformat(event["ts"]).timestamp()
            heard.note(event["id"], now - told)
