import asyncio
import json
from uuid import uuid4

import pytest

from quarterdeck.client.error_mapping import Backoff
from quarterdeck.client.errors import (
    NotFoundError,
    RequestTimeoutError,
    UnauthorizedError,
    UnavailableError,
)
from quarterdeck.client.stream_events import ConnectionLost, ConnectionRestored, Malformed, Received
from quarterdeck.client.streams import EventCursor, EventsApi

REPLICA = uuid4()


def frame(index, *, event_id=None, with_id=True, kind="x", text="ä𝄞"):
    envelope = {
        "id": event_id or f"e{index}",
        "ts": "2026-11-21T10:00:00Z",
        "type": kind,
        "payload": {"t": text},
    }
    head = f"id: {index}\n" if with_id else ""
    return f"{head}data: {json.dumps(envelope, ensure_ascii=False)}\n\n".encode()


def log_after(place, frames):
    return frames[int(place or 0) :]


async def collect(stream, last_id):
    items = []
    async with stream:
        async with asyncio.timeout(60):
            async for item in stream:
                items.append(item)
                if isinstance(item, Received) and item.event.id == last_id:
                    return items
    return items


def ids(items):
    return [item.event.id for item in items if isinstance(item, Received)]


def indexes(items):
    return [item.index for item in items if isinstance(item, Received)]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("part", range(4))
async def test_a_cut_at_any_byte_leaves_no_gap_and_no_repeat(
    chunked, part, tiny_server, connect, quick
):
    frames = [frame(1), b": ping\n\n", frame(2), frame(3)]
    numbered = [frame(index) for index in range(1, 5)]
    whole = b"".join(frames)
    cut = 0

    async def script(seen, reply):
        await reply.open_stream(chunked)
        first = len(server.seen) == 1
        data = whole[:cut] if first else b"".join(log_after(seen.after, numbered))
        if data:
            await (reply.chunk(data) if chunked else reply.raw(data))
        if not first:
            await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        events = EventsApi(connection, quick)
        for cut in range(part, len(whole) + 1, 4):
            server.seen.clear()
            items = await collect(events.stream(REPLICA, after=0), "e4")
            assert indexes(items) == [1, 2, 3, 4], cut
            assert [type(item) for item in items if not isinstance(item, Received)] == [
                ConnectionLost,
                ConnectionRestored,
            ]
            assert all(item.resumed for item in items if isinstance(item, ConnectionRestored))


async def test_a_server_that_repeats_everything_is_heard_once(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        frames = [frame(1), frame(2), frame(2), frame(1), frame(3), frame(3)]
        await reply.raw(b"".join(frames))
        if len(server.seen) > 2:
            await reply.raw(frame(4))
            await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(EventsApi(connection, quick).stream(REPLICA), "e4")
    assert indexes(items) == [1, 2, 3, 4]
    assert [seen.after for seen in server.seen] == [None, "3", "3"]


async def test_without_ids_a_reconnect_says_that_something_may_be_missing(
    tiny_server, connect, quick
):
    async def script(seen, reply):
        await reply.open_stream()
        first = len(server.seen) == 1
        numbers = (1, 2) if first else (2, 3)
        await reply.raw(b"".join(frame(n, with_id=False) for n in numbers))
        if not first:
            await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(EventsApi(connection, quick).stream(REPLICA), "e3")
    assert ids(items) == ["e1", "e2", "e3"]
    assert indexes(items) == [None] * 3
    assert ConnectionRestored(resumed=False) in items
    assert server.seen[1].after is None


async def test_a_hole_after_a_reconnect_is_told(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        first = len(server.seen) == 1
        await reply.raw(frame(1) if first else frame(5) + frame(7))
        if not first:
            await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(EventsApi(connection, quick).stream(REPLICA, after=0), "e7")
    kinds = [item for item in items if not isinstance(item, ConnectionLost)]
    assert kinds[1:3] == [ConnectionRestored(resumed=True), ConnectionRestored(resumed=False)]
    assert indexes(items) == [1, 5, 7]


async def test_a_stalled_stream_is_lost_and_pings_keep_one_alive(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        if len(server.seen) == 1:
            for _ in range(6):
                await reply.raw(b": ping\n\n")
                await asyncio.sleep(0.1)
            await reply.raw(frame(1))
            await asyncio.Event().wait()
        await reply.raw(frame(2))
        await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server, stall=0.4) as connection:
        items = await collect(EventsApi(connection, quick).stream(REPLICA, after=0), "e2")
    assert indexes(items) == [1, 2]
    lost = [item for item in items if isinstance(item, ConnectionLost)]
    assert len(lost) == 1
    assert isinstance(lost[0].error, RequestTimeoutError)


async def test_a_ping_after_an_event_is_no_event(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        await reply.raw(frame(1) + b": ping\n\n" * 3 + frame(2, with_id=False, event_id="x"))
        await reply.raw(frame(3))
        await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(EventsApi(connection, quick).stream(REPLICA), "e3")
    assert items == [item for item in items if isinstance(item, Received)]
    assert [(item.index, item.event.id) for item in items] == [(1, "e1"), (None, "x"), (3, "e3")]


async def test_503_is_waited_out_and_404_is_final(tiny_server, connect, quick):
    async def script(seen, reply):
        match len(server.seen):
            case 1:
                await reply.json({"error": "starting", "code": "ENGINE_STARTING"}, 503)
            case 2:
                await reply.open_stream()
                await reply.raw(frame(1))
            case _:
                await reply.json({"error": "gone", "code": "NOT_FOUND"}, 404)

    async with tiny_server(script) as server, connect(server) as connection:
        items = []
        with pytest.raises(NotFoundError):
            async with EventsApi(connection, quick).stream(REPLICA, after=0) as stream:
                async for item in stream:
                    items.append(item)
    assert isinstance(items[0], ConnectionLost) and isinstance(items[0].error, UnavailableError)
    assert items[1] == ConnectionRestored(resumed=True)
    assert indexes(items) == [1]
    assert len(server.seen) == 3


async def test_a_refused_key_is_final(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.json({"error": "no", "code": "UNAUTHORIZED"}, 401)

    async with tiny_server(script) as server, connect(server) as connection:
        with pytest.raises(UnauthorizedError):
            await anext(EventsApi(connection, quick).stream(REPLICA))
    assert len(server.seen) == 1


async def test_what_cannot_be_read_is_told_and_passed_over(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        await reply.raw(frame(1) + b"id: 2\ndata: {oops\n\n" + b"id: 3\ndata: [1]\n\n")
        await reply.raw(frame(4, kind="one.of.tomorrow"))
        if len(server.seen) > 1:
            await reply.raw(frame(5))
            await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(EventsApi(connection, quick).stream(REPLICA, after=0), "e5")
    assert [type(item) for item in items[:4]] == [Received, Malformed, Malformed, Received]
    assert items[1].text == "{oops"
    assert items[3].event.type == "one.of.tomorrow"
    assert server.seen[1].after == "4"


async def test_reconnect_now_ends_the_waiting(tiny_server, connect):
    async def script(seen, reply):
        if len(server.seen) == 1:
            return
        await reply.open_stream()
        await reply.raw(frame(1))
        await asyncio.Event().wait()

    async with tiny_server(script) as server, connect(server) as connection:
        stream = EventsApi(connection, Backoff(first=3600, longest=3600)).stream(REPLICA, after=0)
        async with stream, asyncio.timeout(60):
            lost = await anext(stream)
            assert isinstance(lost, ConnectionLost) and lost.retry_in > 2000
            stream.reconnect_now()
            assert await anext(stream) == ConnectionRestored(resumed=True)
            received = await anext(stream)
    assert isinstance(received, Received)


async def test_closing_in_the_middle_of_waiting_closes_the_connection(tiny_server, connect, quick):
    gone = asyncio.Event()

    async def script(seen, reply):
        await reply.open_stream()
        await reply.raw(frame(1))
        try:
            while True:
                await reply.raw(b": ping\n\n")
                await asyncio.sleep(0.01)
        finally:
            gone.set()

    async with tiny_server(script) as server, connect(server) as connection:
        async with EventsApi(connection, quick).stream(REPLICA, after=0) as stream:
            await anext(stream)
        async with asyncio.timeout(60):
            await gone.wait()


def test_delays_double_to_their_limit_and_are_spread():
    pace = Backoff()
    for attempt, whole in enumerate([0.25, 0.5, 1, 2, 4, 8, 10, 10]):
        delays = {pace.delay(attempt) for _ in range(50)}
        assert len(delays) > 1
        assert all(whole * 0.7 <= delay <= whole for delay in delays)
    assert pace.delay(10_000) <= 10


def test_the_cursor_remembers_no_more_than_it_must():
    from httpx_sse import ServerSentEvent

    cursor = EventCursor()
    envelope = '{"id": "%d", "ts": "2026-11-21T10:00:00Z", "type": "t", "payload": {}}'
    for number in range(10_000):
        cursor.take(ServerSentEvent(data=envelope % number, id=str(number)))
    assert len(vars(cursor)["_ids"]) <= 4096
    assert cursor.place == "9999"
