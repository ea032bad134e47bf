"""The event log: indices, places in histories, and streams without gap or repeat."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from quarterdeck.service import caches as ring
from quarterdeck.service.db.database import Database
from quarterdeck.service.db.tables import chats, events, workspaces
from quarterdeck.service.errors import UnknownWorkspaceError
from quarterdeck.service.event_log import EventLog
from quarterdeck.service.event_rows import NewEvent
from quarterdeck.service.formats import now_text
from quarterdeck.service.streams import PING, Subscription
from quarterdeck.wire.events import Event

New = Callable[..., Awaitable[str]]
WAIT_SECONDS = 60.0


def delta(chat_id: str, text: str = "hello") -> NewEvent:
    event = {"timestamp": "2026-01-01T00:00:00.000Z", "type": "note", "payload": {"text": text}}
    return NewEvent("chat.turn.delta", {"chatId": chat_id, "messageId": "m", "event": event})


def error(message: str) -> NewEvent:
    return NewEvent("error", {"code": "X", "message": message})


@pytest.fixture
async def log(database: Database) -> AsyncIterator[EventLog]:
    yield EventLog(database)


@pytest.fixture
async def workspace(database: Database, new_workspace: New) -> str:
    return await new_workspace(database)


def indices(chunk: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"^id: (\d+)$", chunk, re.MULTILINE)]


async def collect(subscription: Subscription, count: int) -> list[int]:
    got: list[int] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while len(got) < count:
            got += indices(await anext(subscription))
    return got


async def ended(subscription: Subscription) -> list[int]:
    async with asyncio.timeout(WAIT_SECONDS):
        return [index async for chunk in subscription for index in indices(chunk)]


async def places(database: Database) -> list[tuple[Any, ...]]:
    statement = select(
        events.c.index, events.c.chat_id, events.c.history_index, events.c.chat_history_index
    ).order_by(events.c.index)
    return await database.read(lambda c: [tuple(row) for row in c.execute(statement)])


async def test_indices_count_from_one_and_are_the_workspaces_own(
    log: EventLog, database: Database, workspace: str, new_workspace: New
) -> None:
    other = await new_workspace(database)
    assert await log.append(workspace, [error("a"), error("b")]) == [1, 2]
    assert await log.append(other, [error("c")]) == [1]
    assert await log.append(workspace, [error("d")]) == [3]
    assert await log.append(workspace, []) == []
    assert await log.last_index(workspace) == 3
    assert [e.index for e in await log.read_after(workspace, 1, 10)] == [2, 3]
    assert [e.index for e in await log.read_after(workspace, 0, 2)] == [1, 2]


async def test_agent_events_get_places_in_both_histories(
    log: EventLog, database: Database, workspace: str, new_chat: New
) -> None:
    a, b = await new_chat(database, workspace), await new_chat(database, workspace)
    await log.append(workspace, [delta(a), error("x"), delta(b), delta(a)])
    await log.append(workspace, [delta(b)])
    assert await places(database) == [
        (1, a, 0, 0),
        (2, None, None, None),
        (3, b, 1, 0),
        (4, a, 2, 1),
        (5, b, 3, 1),
    ]


async def test_concurrent_appends_leave_no_gap(log: EventLog, workspace: str) -> None:
    results = await asyncio.gather(
        *(log.append(workspace, [error(str(n)), error(str(n))]) for n in range(100))
    )
    assert sorted(index for pair in results for index in pair) == list(range(1, 201))


async def test_a_projection_is_of_the_same_transaction(
    log: EventLog, database: Database, workspace: str
) -> None:
    chat = "00000000-0000-4000-8000-000000000001"

    def make_chat(connection: Connection) -> None:
        row = {"id": chat, "workspace_id": workspace, "provider": "builtin"}
        flags = {"processing": False, "awaiting_input": False}
        times = {"created_at": now_text(), "updated_at": now_text()}
        connection.execute(insert(chats).values(**row, **flags, **times))

    await log.append(workspace, [delta(chat)], also=make_chat)
    assert await places(database) == [(1, chat, 0, 0)]

    def fail(connection: Connection) -> None:
        connection.execute(update(workspaces).values(status="active"))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await log.append(workspace, [error("lost")], also=fail)
    status = await database.read(lambda c: c.execute(select(workspaces.c.status)).scalar())
    assert status == "sleeping"
    assert await log.last_index(workspace) == 1


async def test_an_unknown_workspace_is_told(log: EventLog) -> None:
    with pytest.raises(UnknownWorkspaceError):
        await log.append("00000000-0000-4000-8000-000000000000", [error("x")])


async def test_a_frame_is_the_contracts(log: EventLog, workspace: str) -> None:
    subscription = await log.subscribe(workspace, None)
    await log.append(workspace, [NewEvent("error", {"code": "X", "message": "a\nb\u2028\u00e9"})])
    chunk = await anext(subscription)
    lines = chunk.decode("ascii").split("\n")
    assert lines[0] == "id: 1" and lines[1].startswith("data: ") and lines[2:] == ["", ""]
    event = Event.model_validate_json(lines[1].removeprefix("data: "))
    assert event.payload["message"] == "a\nb\u2028\u00e9"
    assert set(json.loads(lines[1].removeprefix("data: "))) == {"id", "ts", "type", "payload"}
    await subscription.aclose()


async def test_without_an_index_a_stream_is_live_only(log: EventLog, workspace: str) -> None:
    await log.append(workspace, [error("before")])
    subscription = await log.subscribe(workspace, None)
    await log.append(workspace, [error("after"), error("after")])
    assert await collect(subscription, 2) == [2, 3]
    await subscription.aclose()


async def test_a_stream_goes_on_after_an_index(log: EventLog, workspace: str) -> None:
    await log.append(workspace, [error(str(n)) for n in range(200)])
    subscription = await log.subscribe(workspace, 50)
    await log.append(workspace, [error("live")])
    assert await collect(subscription, 151) == list(range(51, 202))
    await subscription.aclose()


async def test_an_index_beyond_the_end_means_live(log: EventLog, workspace: str) -> None:
    await log.append(workspace, [error("before")])
    subscription = await log.subscribe(workspace, 1000)
    await log.append(workspace, [error("after")])
    assert await collect(subscription, 1) == [2]
    await subscription.aclose()


async def test_streams_opened_amid_appends_have_no_gap_and_no_repeat(
    log: EventLog, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "RING_FRAMES", 8)  # every stream falls back to the database
    total = 200

    async def write() -> None:
        for n in range(total // 4):
            await log.append(workspace, [error(str(n))] * 4)

    async def follow(after: int) -> tuple[int, list[int]]:
        subscription = await log.subscribe(workspace, after)
        got = await collect(subscription, total - after)
        await subscription.aclose()
        return after, got

    writing = asyncio.create_task(write())
    following: list[asyncio.Task[tuple[int, list[int]]]] = []
    while not writing.done():
        after = await log.last_index(workspace)
        following.append(asyncio.create_task(follow(after - after % 20)))
    await writing
    for task in following:
        after, got = await task
        assert got == list(range(after + 1, total + 1))
    assert log.listeners(workspace) == 0


async def test_a_slow_reader_is_served_from_the_database(
    log: EventLog, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "RING_BYTES", 10_000)
    subscription = await log.subscribe(workspace, None)
    for _ in range(10):
        await log.append(workspace, [error("x" * 1000) for _ in range(30)])
    held = log._broadcasts._rings[workspace]
    assert held.size <= 10_000 and len(held.frames) < 10
    assert await collect(subscription, 300) == list(range(1, 301))
    await subscription.aclose()


async def test_a_chunk_is_bounded(log: EventLog, workspace: str) -> None:
    subscription = await log.subscribe(workspace, None)
    await log.append(workspace, [error("x") for _ in range(100)])
    await log.append(workspace, [error("x" * 200_000) for _ in range(3)])
    sizes = [len(indices(await anext(subscription))) for _ in range(4)]
    assert sizes == [64, 37, 1, 1]
    await subscription.aclose()


async def test_pings_come_in_quiet_and_in_traffic(database: Database, workspace: str) -> None:
    log = EventLog(database, ping_seconds=0.05)
    subscription = await log.subscribe(workspace, None)
    async with asyncio.timeout(WAIT_SECONDS):
        assert await anext(subscription) == PING
        writing = asyncio.create_task(_write_on(log, workspace))
        chunks = [await anext(subscription) for _ in range(2)]
        while PING not in chunks[1:]:
            chunks.append(await anext(subscription))
    assert any(indices(chunk) for chunk in chunks)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await subscription.aclose()


async def _write_on(log: EventLog, workspace: str) -> None:
    while True:
        await log.append(workspace, [error("x")])


async def test_streams_end_with_the_service(log: EventLog, workspace: str) -> None:
    waiting = await log.subscribe(workspace, None)
    reading = asyncio.create_task(ended(waiting))
    await asyncio.sleep(0)
    log.end_streams()
    assert await reading == []
    later = await log.subscribe(workspace, None)
    assert await ended(later) == []
    await waiting.aclose()
    await later.aclose()


async def test_streams_end_with_their_workspace(
    log: EventLog, database: Database, workspace: str, new_workspace: New
) -> None:
    other = await new_workspace(database)
    gone, kept = await log.subscribe(workspace, None), await log.subscribe(other, None)
    await log.append(workspace, [error("x")])
    statement = delete(workspaces).where(workspaces.c.id == workspace)
    await database.write(lambda c: c.execute(statement))
    log.drop(workspace)
    assert await ended(gone) == []
    await log.append(other, [error("x")])
    assert await collect(kept, 1) == [1]
    left = await database.read(lambda c: c.execute(text("SELECT count(*) FROM events")).scalar())
    assert left == 1
    await gone.aclose()
    await kept.aclose()


async def test_a_canceled_append_is_still_published(
    log: EventLog, database: Database, workspace: str
) -> None:
    subscription = await log.subscribe(workspace, None)
    task = asyncio.create_task(log.append(workspace, [error("x")]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await collect(subscription, 1) == [1]
    await subscription.aclose()
