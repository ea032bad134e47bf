"""From an engine's event to a client, and opening a long transcript."""

import asyncio
import statistics
import time
from datetime import UTC, datetime
from uuid import UUID

from quarterdeck.client import LOCAL_URL, Client, HttpConnection
from quarterdeck.client.stream_events import Received
from quarterdeck.client.streams import EventStream
from quarterdeck.local.home import Home
from quarterdeck.wire.chats import SendMessage
from tests.bench.installation import QD, Installation
from tests.bench.table import Row
from tests.support.program import Program

LONG = 10_000
LAST = "```sh\necho the last one\n```"
MESSAGE = "```sh\nfor n in $(seq 200); do echo line $n; sleep 0.01; done\n```"


def event_rows(made: Installation) -> list[Row]:
    """Latency of events, and the time to open a chat of ten thousand."""
    made.qd("replica", "create", "--name", "events", "--wait")
    latencies = asyncio.run(_latencies(made))
    rows = [
        Row(
            "event: engine to client, median",
            statistics.median(latencies) * 1000,
            "ms",
            5,
            f"{len(latencies)} events, from the journal's time stamp",
        )
    ]
    rows.append(_open_long(made))
    return rows


def _client(made: Installation) -> Client:
    home = Home(made.home)
    return Client(HttpConnection(LOCAL_URL, home.key.read_text().strip(), socket=home.socket))


async def _latencies(made: Installation) -> list[float]:
    async with _client(made) as client:
        replica = (await client.replicas.list()).replicas[0]
        found: list[float] = []
        async with client.events.stream(replica.id) as stream:
            sender = asyncio.create_task(_send(client, replica.id))
            async for item in stream:
                if not isinstance(item, Received):
                    continue
                now = datetime.now(UTC)
                if item.event.type == "chat.turn.delta":
                    found.append((now - item.event.ts).total_seconds())
                if item.event.type == "chat.turn.completed":
                    break
            await sender
        return found


async def _send(client: Client, replica_id: UUID) -> None:
    await client.messages.send(replica_id, SendMessage(message=MESSAGE))


def _open_long(made: Installation) -> Row:
    """Fills a chat to ten thousand events by messages, then opens it in the cockpit."""
    count = asyncio.run(_fill(made))
    with Program(
        QD, columns=120, lines=40, environment=made.environment, directory=made.repository
    ) as program:
        program.wait_for("events")
        program.settle(0.5)
        begun = time.monotonic()
        program.type("\r")
        program.wait_for("the last one")
        elapsed = time.monotonic() - begun
    return Row("transcript: opens at its end", elapsed, "s", 1, f"{count} events")


async def _fill(made: Installation) -> int:
    blocks = "\n\n".join(f"```sh\necho block {n}\n```" for n in range(400))
    async with _client(made) as client:
        replica = (await client.replicas.list()).replicas[0]
        async with client.events.stream(replica.id) as stream:
            while (total := (await client.history.page(replica.id, limit=1)).total) < LONG:
                await client.messages.send(replica.id, SendMessage(message=blocks))
                await _finished(stream)
            # A block: to words alone the built-in agent answers at more length than a screen shows.
            await client.messages.send(replica.id, SendMessage(message=LAST))
            await _finished(stream)
        return total


async def _finished(stream: EventStream) -> None:
    async for item in stream:
        if isinstance(item, Received) and item.event.type == "chat.turn.completed":
            return
