"""Searching the chats of all replicas, a million events."""

import asyncio
import random
import sqlite3
import statistics
import time

from quarterdeck.client import LOCAL_URL, Client, HttpConnection
from quarterdeck.local.home import Home
from tests.bench.installation import Installation
from tests.bench.table import Row, cpu_seconds

EVENTS = 1_000_000
TEXTS = EVENTS // 2
"""Of four events of a chat two are searched: a message, and one of the events of a call."""
SAMPLES = 20
WORDS = [f"{a}{b}{c}" for a in "brdfglm" for b in "aeiou" for c in ("nter", "lock", "ssion", "der")]
QUERIES = {
    "a word that is rare": '"needle"',
    "a word that is everywhere": "the ",
    "two words that are everywhere": "the file ",
    "a phrase": '"file path core"',
    "the beginning of a word": "ne",
    "words that never meet": "the file nowhere ",
}


def search_rows(made: Installation) -> list[Row]:
    """Answers of the service, by its processor time and by the clock."""
    made.qd("replica", "create", "--name", "talk", "--wait")
    with made.database() as opened:
        _fill(opened)
    return asyncio.run(_measure(made))


def _fill(opened: sqlite3.Connection) -> None:
    chat, workspace = opened.execute("SELECT id, workspace_id FROM chats").fetchone()
    chance = random.Random(1)
    rows = (
        (workspace, chat, "agent", number, "2026-11-20T00:00:00.000Z", _text(number, chance))
        for number in range(TEXTS)
    )
    opened.executemany(
        "INSERT INTO search_texts (workspace_id, chat_id, role, history_index, ts, text) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        rows,
    )


def _text(number: int, chance: random.Random) -> str:
    rare = " needle" if number % 100_000 == 0 else ""
    return f"{' '.join(chance.choices(WORDS, k=12))} the file path core{number}{rare}"


async def _measure(made: Installation) -> list[Row]:
    home = Home(made.home)
    assert made.service is not None
    pid = made.service.pid
    rows: list[Row] = []
    async with Client(
        HttpConnection(LOCAL_URL, home.key.read_text().strip(), socket=home.socket)
    ) as client:
        for name, query in QUERIES.items():
            found = await client.history.search(query)
            before, times = cpu_seconds(pid), list[float]()
            for _ in range(SAMPLES):
                begun = time.monotonic()
                await client.history.search(query)
                times.append(time.monotonic() - begun)
            used = (cpu_seconds(pid) - before) / SAMPLES * 1000
            note = f"{len(found.hits)} hits, {statistics.median(times) * 1000:.0f} ms by the clock"
            rows.append(Row(f"search in {EVENTS:,} events: {name}", used, "ms", 100, note))
    return rows
