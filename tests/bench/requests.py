"""What one request costs: a JSON operation of an idle service, a page of a long history, a search."""

import asyncio
import itertools
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from quarterdeck.local.home import Home
from tests.bench.installation import Installation
from tests.bench.table import Row

RUNS = 400
EVENTS = 1_000_000
TIMES_THE_PEER = 1.5
PAGE_LIMIT_MS = 20
SEARCH_LIMIT_MS = 100
_letters = random.Random(7)
VOCABULARY = [
    "".join(_letters.choices("abcdefghijklmnopqrstuvwxyz", k=_letters.randint(3, 9)))
    for _ in range(20_000)
]
WORDS = 4
"""Words of one event."""


def request_rows(made: Installation) -> list[Row]:
    """A JSON operation beside the bare handler, both in one run; then a page of the history."""
    home = Home(made.home)
    with _bare(made.directory) as peer:
        ours, theirs = asyncio.run(_compare(home, peer))
    rows = [
        Row(
            "request: one environment, median",
            ours * 1000,
            "ms",
            theirs * 1000 * TIMES_THE_PEER,
            f"bare handler with one SQLite read {theirs * 1000:.2f} ms",
        )
    ]
    made.qd("replica", "create", "--name", "long", "--wait")
    replica = made.json("replica", "show", "long")["replica"]["id"]
    _fill(home, replica)
    taken = asyncio.run(_page(home, replica))
    note = f"100 events from the end of {EVENTS:,}"
    rows.append(Row("history: a page from the end", taken * 1000, "ms", PAGE_LIMIT_MS, note))
    return [*rows, *_search_rows(made, home)]


def _client(socket: Path, key: str = "none") -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(socket)),
        base_url="http://bench",
        headers={"Authorization": f"Bearer {key}"},
    )


async def _compare(home: Home, peer: Path) -> tuple[float, float]:
    """Medians of both, asked in turn, so that whatever else the machine does meets both."""
    ours: list[float] = []
    theirs: list[float] = []
    async with _client(home.socket, home.key.read_text().strip()) as service, _client(peer) as bare:
        for _ in range(RUNS):
            ours.append(await _taken(service, "/v1/environments/global"))
            theirs.append(await _taken(bare, "/"))
    return statistics.median(ours[20:]), statistics.median(theirs[20:])


async def _taken(client: httpx.AsyncClient, path: str) -> float:
    begun = time.perf_counter()
    answer = await client.get(path)
    taken = time.perf_counter() - begun
    assert answer.status_code == 200, answer.text
    return taken


async def _page(home: Home, replica: str) -> float:
    async with _client(home.socket, home.key.read_text().strip()) as client:
        path = f"/v1/replica/{replica}/history?limit=100"
        answer = await client.get(path)
        assert answer.json()["total"] >= EVENTS, answer.text[:200]
        return statistics.median([await _taken(client, path) for _ in range(21)])


def _fill(home: Home, replica: str) -> None:
    """A million events of a chat, behind the service's back: by messages it would take hours."""
    with sqlite3.connect(home.database, timeout=60) as database:
        (chat,) = database.execute(
            "SELECT id FROM chats WHERE workspace_id = ?", (replica,)
        ).fetchone()
        first, history = database.execute(
            "SELECT next_event_index, next_history_index FROM workspaces WHERE id = ?", (replica,)
        ).fetchone()
        (of_chat,) = database.execute(
            "SELECT next_history_index FROM chats WHERE id = ?", (chat,)
        ).fetchone()
        agent_events = _turns()
        database.executemany(
            'INSERT INTO events (workspace_id, "index", id, ts, type, payload_json, chat_id,'
            " history_index, chat_history_index) VALUES (?, ?, ?, ?, 'chat.turn.delta', ?, ?, ?, ?)",
            (
                (
                    *(replica, first + n, f"00000000-0000-4000-8000-{n:012}"),
                    "2026-01-01T00:00:00.000Z",
                    json.dumps({"chatId": chat, "messageId": "m", "event": next(agent_events)}),
                    *(chat, history + n, of_chat + n),
                )
                for n in range(EVENTS)
            ),
        )
        database.execute(
            "UPDATE workspaces SET next_event_index = next_event_index + ?,"
            " next_history_index = next_history_index + ? WHERE id = ?",
            (EVENTS, EVENTS, replica),
        )
        database.execute(
            "UPDATE chats SET next_history_index = next_history_index + ? WHERE id = ?",
            (EVENTS, chat),
        )


def _turns() -> Iterator[dict[str, Any]]:
    """Turns of 20 events whose words are as common as those of a language (Zipf's law)."""
    choose = random.Random(20)
    weights = [1 / (n + 1) for n in range(len(VOCABULARY))]
    words = iter(choose.choices(VOCABULARY, weights, k=EVENTS * WORDS))
    for turn in itertools.count():
        yield _event("user-message", messageId=f"m{turn}", text=_sentence(words))
        for _ in range(17):
            content = {"type": "text", "text": _sentence(words) + " "}
            yield _update("agent_message_chunk", messageId=f"a{turn}", content=content)
        yield _update("tool_call", toolCallId=f"t{turn}", title=_sentence(words))
        yield _event("turn-result", messageId=f"m{turn}", stopReason="end_turn")


def _sentence(words: Iterator[str]) -> str:
    return " ".join(itertools.islice(words, WORDS))


def _update(kind: str, **payload: Any) -> dict[str, Any]:
    return _event("acp-session_update", sessionUpdate=kind, **payload)


def _event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": "2026-01-01T00:00:00.000Z", "payload": payload}


def _search_rows(made: Installation, home: Home) -> list[Row]:
    """The end of a turn has all of the chat indexed, which takes the service as long as it takes."""
    begun = time.monotonic()
    made.qd("replica", "send", "long", "the needle", "--wait")
    while not made.json("search", "needle")["hits"]:
        time.sleep(0.5)
    rate = EVENTS / (time.monotonic() - begun)
    rows = [Row("search: events indexed a second, in the background", rate, "/s")]
    first, second, third, *_, last = VOCABULARY
    for what, query in {
        "a rare word": "needle",
        "the most common word": first,
        "two common words": f"{first} {second}",
        "a phrase of two common words": f'"{second} {third}"',
        "the beginning of a common word": second[:2],
        "a rare word and a common one": f"{first} {last}",
    }.items():
        taken = asyncio.run(_found(home, query))
        rows.append(Row(f"search: {what}", taken * 1000, "ms", SEARCH_LIMIT_MS, f"q={query}"))
    return rows


async def _found(home: Home, query: str) -> float:
    async with _client(home.socket, home.key.read_text().strip()) as client:
        path = f"/v1/search?q={quote(query)}"
        return statistics.median([await _taken(client, path) for _ in range(11)])


@contextmanager
def _bare(directory: Path) -> Generator[Path]:
    socket = directory / "bare.sock"
    words = [sys.executable, "-m", "tests.bench.bare", str(socket), str(directory / "bare.sqlite3")]
    peer = subprocess.Popen(words)
    try:
        while not socket.exists():
            time.sleep(0.05)
        yield socket
    finally:
        peer.terminate()
        peer.wait(timeout=20)
