import asyncio
import gc
import json
from uuid import uuid4

import pytest

from quarterdeck.engine.errors import (
    EngineGoneError,
    EngineProtocolError,
    EngineRefusedError,
    WrongSecretError,
)
from quarterdeck.engine.link import EngineLink
from quarterdeck.wire.engine import DeliverMessage, OpenChat
from quarterdeck.wire.terminals import ExecRequest
from tests.engine.conftest import SECRET


async def test_hello_and_calls_side_by_side(place):
    await place.start()
    link = await place.link()
    assert link.hello.pid > 0 and link.hello.last_index >= 0
    slow = asyncio.create_task(link.exec(ExecRequest(command="sleep 0.5; echo slow")))
    quick = await link.exec(ExecRequest(command="echo quick"))
    assert quick.output == "quick\n" and not slow.done()
    assert (await slow).output == "slow\n"


async def test_a_wrong_secret_is_refused_and_the_link_closed(place):
    await place.start()
    with pytest.raises(WrongSecretError):
        await EngineLink.open(*await place.connect(), "guess")


async def test_nothing_is_answered_before_open(place):
    await place.start()
    reader, writer = await place.connect()
    writer.write(b'{"jsonrpc":"2.0","id":1,"method":"status"}\n')
    answer = json.loads(await reader.readline())
    assert answer["error"]["code"] == -32001
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[]\n", b"{}\n"])
async def test_garbage_is_told_and_the_link_closed(place, garbage: bytes):
    await place.start()
    reader, writer = await place.connect()
    writer.write(garbage)
    assert json.loads(await reader.readline())["error"]["code"] == -32700
    assert await reader.read() == b""
    writer.close()
    await (await place.link()).status()


async def test_a_stranger_cannot_make_it_hold_a_long_line(place):
    await place.start()
    reader, writer = await place.connect()
    writer.write(b"x" * 200_000)
    assert json.loads(await reader.readline())["error"]["code"] == -32700
    writer.close()


async def test_unknown_methods_and_wrong_parameters(place):
    await place.start()
    link = await place.link()
    with pytest.raises(EngineRefusedError) as unknown:
        await link._send("no.such", None)
    assert unknown.value.code == "NOT_FOUND"
    with pytest.raises(EngineRefusedError) as wrong:
        await link._send("exec", {"command": "true", "timeout_seconds": 51})
    assert wrong.value.code == "INVALID_REQUEST"
    assert (wrong.value.details or "").startswith("timeout_seconds: ")


async def test_a_lost_engine_ends_calls_and_streams(place):
    engine = await place.spawn()
    link = await place.link(after=0)
    call = asyncio.create_task(link.exec(ExecRequest(command="sleep 30")))
    entries = link.journal()
    assert (await anext(entries)).type == "engine.ready"
    await link.status()
    engine.kill()
    with pytest.raises(EngineGoneError):
        await call
    with pytest.raises(EngineGoneError):
        while True:
            await anext(entries)
    with pytest.raises(EngineGoneError):
        await link.status()
    assert link.closed


async def test_an_engine_that_talks_nonsense_is_a_protocol_error():
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"what?\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    async with server:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        with pytest.raises(EngineProtocolError):
            await EngineLink.open(*streams, "x")


@pytest.mark.long
async def test_many_links_see_the_same_journal(place, agents, message, wait_until):
    await place.start(agents.FakeCatalog())
    followers = [await place.entries() for _ in range(40)]
    link = await place.link()
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_send(message(chat, "many 300"))
    for one in followers:
        await one.wait("chat.turn.completed")
    last = (await link.status()).active_sse_clients
    assert last == 40
    ids = [[e.index for e in one.all] for one in followers]
    shortest = min(map(len, ids))
    assert shortest > 300 and all(seen[:shortest] == list(range(1, shortest + 1)) for seen in ids)


@pytest.mark.long
async def test_a_large_message_passes_both_ways(place, agents, message):
    await place.start(agents.FakeCatalog())
    entries, link = await place.entries(), await place.link()
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_send(message(chat, "say " + "y" * 3_000_000))
    await link.chat_send(message(chat, "huge 34000000"))
    await entries.wait("chat.turn.completed", 2)
    spoken = [e for e in entries.all if e.type == "error"]
    assert spoken[0].payload["code"] == "PAYLOAD_TOO_LARGE"
    too_large = DeliverMessage(chat_id=chat, message_id=uuid4(), text="z" * 34_000_000)
    with pytest.raises(EngineRefusedError) as refused:
        await link.chat_send(too_large)
    assert refused.value.code == "PAYLOAD_TOO_LARGE"


@pytest.mark.long
async def test_a_call_that_is_given_up_at_the_end_leaves_nothing_unheard(place):
    process = await place.spawn()
    link = await place.link()
    unheard: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    async with link._sending:
        call = asyncio.create_task(link.status())
        await asyncio.sleep(0)
        process.kill()
        await link.wait_closed()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    del call
    await asyncio.sleep(0)  # the loop lets go of it
    gc.collect()
    assert unheard == []


async def test_links_of_an_earlier_service_end_and_are_refused(place):
    await place.start()
    earlier = await place.link()
    later = await EngineLink.open(*await place.connect(), SECRET, lease=1)
    await earlier.wait_closed()
    with pytest.raises(EngineRefusedError) as caught:
        await place.link()
    assert caught.value.code == "CONFLICT"
    await later.status()
    await later.close()
