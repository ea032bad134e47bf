import asyncio
import base64
import json
from uuid import uuid4

import pytest

from quarterdeck.client.errors import NotActiveError
from quarterdeck.client.stream_events import (
    ConnectionLost,
    ConnectionRestored,
    Malformed,
    TerminalReceived,
)
from quarterdeck.client.terminals import TerminalsApi
from quarterdeck.wire.terminals import TerminalExit, TerminalOutput, TerminalReplay

REPLICA, SESSION = uuid4(), uuid4()
OUTPUT = bytes(range(256)) + "grün ☾".encode()


def frame(value, offset=None):
    head = "" if offset is None else f"id: {offset}\n"
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def encoded(data):
    return base64.b64encode(data).decode()


def output(start, end):
    return frame({"type": "output", "data": encoded(OUTPUT[start:end])}, end)


def replay(end, start=0):
    data = encoded(OUTPUT[start:end])
    value = {"type": "replay", "data": data, "offset": end, "cols": 80, "rows": 24, "reset": True}
    return frame(value, end)


EXIT = frame({"type": "exit", "exitCode": 3}, len(OUTPUT))


async def collect(stream):
    items = []
    async with stream, asyncio.timeout(60):
        async for item in stream:
            items.append(item)
    return items


def screen(items):
    """What an emulator would have been fed since the last reset."""
    shown = b""
    for item in items:
        match item:
            case TerminalReceived(_, TerminalReplay(data=text), data):
                shown = data
                assert data == base64.b64decode(text)
            case TerminalReceived(_, TerminalOutput(data=text), data):
                shown += data
                assert data == base64.b64decode(text)
            case _:
                pass
    return shown


@pytest.mark.parametrize("part", range(3))
async def test_a_cut_at_any_byte_shows_every_byte_once(part, tiny_server, connect, quick):
    whole = replay(5) + b": ping\n\n" + output(5, 12) + output(12, 30)
    cut = 0

    async def script(seen, reply):
        await reply.open_stream()
        if len(server.seen) == 1:
            await reply.raw(whole[:cut])
        elif seen.after is None:
            await reply.raw(replay(40) + output(40, len(OUTPUT)) + EXIT)
        else:
            await reply.raw(output(int(seen.after), len(OUTPUT)) + EXIT)

    async with tiny_server(script) as server, connect(server) as connection:
        terminals = TerminalsApi(connection, quick)
        for cut in range(part, len(whole) + 1, 3):
            server.seen.clear()
            items = await collect(terminals.stream(REPLICA, SESSION))
            assert screen(items) == OUTPUT, cut
            assert isinstance(items[-1].event, TerminalExit)
            assert items[-1].event.exit_code == 3


async def test_repeats_are_dropped_and_overlaps_are_cut(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        await reply.raw(replay(10) + output(0, 10) + output(5, 20) + output(18, 20))
        await reply.raw(output(20, len(OUTPUT)) + EXIT)

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(TerminalsApi(connection, quick).stream(REPLICA, SESSION))
    assert screen(items) == OUTPUT
    assert [item.offset for item in items] == [10, 20, len(OUTPUT), len(OUTPUT)]


async def test_a_hole_is_filled_by_a_replay(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        if len(server.seen) == 1:
            await reply.raw(replay(10) + output(12, 20))
            await asyncio.Event().wait()
        await reply.raw(replay(len(OUTPUT)) + EXIT)

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(TerminalsApi(connection, quick).stream(REPLICA, SESSION))
    assert screen(items) == OUTPUT
    assert ConnectionRestored(resumed=False) in items
    assert server.seen[1].after is None


async def test_a_given_offset_is_asked_for_and_a_reset_is_passed_on(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        await reply.raw(replay(len(OUTPUT), start=100) + EXIT)

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(TerminalsApi(connection, quick).stream(REPLICA, SESSION, offset=7))
    assert server.seen[0].after == "7"
    assert screen(items) == OUTPUT[100:]


async def test_without_ids_the_place_is_counted(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        if len(server.seen) == 1:
            plain = {"type": "output", "data": encoded(OUTPUT[10:20])}
            await reply.raw(replay(10).partition(b"\n")[2] + frame(plain))
        else:
            await reply.raw(output(int(seen.after), len(OUTPUT)) + EXIT)

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(TerminalsApi(connection, quick).stream(REPLICA, SESSION))
    assert server.seen[1].after == "20"
    assert screen(items) == OUTPUT


async def test_what_cannot_be_read_is_told(tiny_server, connect, quick):
    async def script(seen, reply):
        await reply.open_stream()
        await reply.raw(frame({"type": "output", "data": "!!"}, 5) + b"data: {\n\n")
        await reply.raw(frame({"type": "of tomorrow"}) + EXIT)

    async with tiny_server(script) as server, connect(server) as connection:
        items = await collect(TerminalsApi(connection, quick).stream(REPLICA, SESSION))
    assert [type(item) for item in items] == [Malformed] * 3 + [TerminalReceived]


async def test_a_replica_that_went_to_sleep_ends_the_stream(tiny_server, connect, quick):
    async def script(seen, reply):
        if len(server.seen) == 1:
            await reply.open_stream()
            await reply.raw(replay(10) + frame({"type": "error", "message": "engine lost"}))
        else:
            await reply.json({"error": "asleep", "code": "WORKSPACE_NOT_ACTIVE"}, 409)

    async with tiny_server(script) as server, connect(server) as connection:
        stream = TerminalsApi(connection, quick).stream(REPLICA, SESSION)
        items = []
        with pytest.raises(NotActiveError):
            async with stream:
                async for item in stream:
                    items.append(item)
    assert [type(item) for item in items] == [TerminalReceived, TerminalReceived, ConnectionLost]
