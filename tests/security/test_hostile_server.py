"""What a server that is not ours can do to the client: nothing but waste its own words."""

import asyncio
import gzip
import resource
import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain, count, repeat
from typing import Any
from uuid import uuid4

import httpx
import pytest

from quarterdeck.client import Client, HttpConnection, chats, inside, paging, streams
from quarterdeck.client import connection as connection_module
from quarterdeck.client.error_mapping import Backoff
from quarterdeck.client.errors import (
    ClientError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
)
from quarterdeck.client.stream_events import ConnectionLost, Malformed, Received
from quarterdeck.wire.json_size import LARGEST_NUMBER, VALUES_LIMIT

CHUNK = b"x" * (1 << 20)
QUICK = Backoff(first=0.001, longest=0.002)


@asynccontextmanager
async def server(head: str, parts: Callable[[], Iterator[bytes]]) -> AsyncIterator[Client]:
    """A server that answers every request with a head and what follows, until it is cut off."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
            for part in parts():
                writer.write(part)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        connection = HttpConnection(f"http://127.0.0.1:{port}", "qd_key", pace=QUICK)
        async with Client(connection) as client:
            yield client


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@cache
def bomb() -> bytes:
    """A quarter of a gigabyte of blanks, compressed."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join(packer.compress(b" " * (16 << 20)) for _ in range(16)) + packer.flush()


JSON = "HTTP/1.1 200 OK\nContent-Type: application/json\nConnection: close"
STREAM = "HTTP/1.1 200 OK\nContent-Type: text/event-stream\nConnection: close"
ENDLESS: list[tuple[str, Callable[[], Iterator[bytes]]]] = [
    (JSON, lambda: chain([b'{"replicas":"'], repeat(CHUNK))),
    (JSON, lambda: iter([b'{"replicas":[' + b"{}," * (20 << 20) + b"{}]}"])),
    (JSON, lambda: iter([b"[" * (1 << 20)])),
    (f"{JSON}\nContent-Encoding: gzip", lambda: iter([bomb()])),
    (f"{JSON}\nContent-Encoding: gzip, gzip", lambda: iter([gzip.compress(bomb())])),
    (f"{JSON}\nContent-Encoding: br", lambda: repeat(CHUNK)),
]


@pytest.mark.parametrize("case", range(len(ENDLESS)))
async def test_an_endless_answer_is_an_error_and_costs_little(case: int) -> None:
    head, parts = ENDLESS[case]
    before = peak()
    async with server(head, parts) as client:
        with pytest.raises(ProtocolError) as error:
            await client.replicas.list()
    assert "127.0.0.1" in error.value.message and error.value.next_step
    assert peak() - before < 320


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "gzip, br", "gzip, gzip", "gzip\nContent-Encoding: gzip"]
)
async def test_a_compression_that_was_not_asked_for_is_refused(encoding: str) -> None:
    """Also a short one, and whatever the HTTP library could unpack."""
    head = f"{JSON}\nContent-Encoding: {encoding}"
    async with server(head, lambda: iter([gzip.compress(b"{}")])) as client:
        with pytest.raises(ProtocolError, match="was not asked for"):
            await client.replicas.list()


async def test_an_answer_of_many_values_is_refused_before_it_is_read() -> None:
    body = b'{"replicas":[' + b"{}," * VALUES_LIMIT + b"{}]}"
    async with server(JSON, lambda: iter([body])) as client:
        with pytest.raises(ProtocolError, match="too many values"):
            await client.replicas.list()


@pytest.mark.parametrize(
    ("values", "reason"),
    [(1, "replicas.0.id: Field required"), (100_000, "it has 400,004 faults")],
)
async def test_of_endless_faults_none_is_told(values: int, reason: str) -> None:
    """Pydantic makes an object of each when asked for the first."""
    body = b'{"replicas":[' + b",".join([b"{}"] * values) + b"]}"
    async with server(JSON, lambda: iter([body])) as client:
        with pytest.raises(ProtocolError) as error:
            await client.replicas.list()
    assert error.value.message.endswith(f"could not be read: {reason}.")


@asynccontextmanager
async def flooding(head: bytes, flood: bytes) -> AsyncGenerator[str]:
    """A server in a process of its own: one in the same loop would let it go on."""
    program = f"""
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    connection, _ = listening.accept()
    connection.recv(65536)
    try:
        connection.sendall({head!r})
        while True:
            connection.sendall({flood!r} * 1000)
    except OSError:
        connection.close()
"""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await server.stdout.readline())}"
    finally:
        server.kill()
        await server.wait()


@pytest.mark.parametrize("interim", [b"100 Continue", b"103 Early Hints\r\nLink: </x>"])
async def test_endless_interim_answers_are_an_error(interim: bytes) -> None:
    async with flooding(b"", b"HTTP/1.1 %b\r\n\r\n" % interim) as url:
        async with Client(HttpConnection(url, "qd_key", pace=QUICK)) as client:
            with pytest.raises(ClientError):
                await client.replicas.list()
        other = httpx.AsyncHTTPTransport()
        remote = HttpConnection(url, "qd_key", transport=other, pace=QUICK, timeout=0.1)
        async with Client(remote) as client:
            with pytest.raises(RequestTimeoutError):
                await client.replicas.list()


async def test_an_endless_stream_leaves_turns_to_others() -> None:
    """The cockpit's keys wait in the same loop."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        flooding(head, b"id: 1\ndata: {}\n\n") as url,
        HttpConnection(url, "qd_key", pace=QUICK) as connection,
        connection.listen("/v1/automations/events") as messages,
    ):
        waiting, seen = asyncio.create_task(other()), 0
        async for _ in messages:
            if (seen := seen + 1) == 50_000:  # ten reads
                break
        waiting.cancel()
    assert turns >= 5


async def test_endless_events_leave_turns_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two, once their share of the time is over, whoever reads them."""
    monkeypatch.setattr(streams, "SHARE_SECONDS", 0.0, raising=False)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        flooding(head, b"id: 1\ndata: {}\n\n") as url,
        Client(HttpConnection(url, "qd_key", pace=QUICK)) as client,
        client.changes.stream() as events,
    ):
        await anext(events)
        waiting = asyncio.create_task(other())
        for _ in range(1000):  # of one read
            await anext(events)
        waiting.cancel()
    assert turns >= 900


async def test_no_cookie_is_kept() -> None:
    """They would be sent with every later request, and a server could add one with each answer."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        cookie = b"Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; Domain=127.0.0.1\r\n"
        body = b'{"replicas": [], "total": 0}'
        writer.write(
            b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (cookie, len(body), body)
        )
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with Client(HttpConnection(url, "qd_key", pace=QUICK)) as client:
            for _ in range(2):
                with pytest.raises(ProtocolError):
                    await client.replicas.list()
    assert len(heads) == 2 and not [head for head in heads if b"cookie" in head.lower()]


async def test_an_endless_error_is_still_one() -> None:
    async with server("HTTP/1.1 404 X\nConnection: close", lambda: repeat(CHUNK)) as client:
        with pytest.raises(ResponseError) as error:
            await client.replicas.list()
    assert error.value.status == 404


async def test_downloads_have_a_bound_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "DOWNLOAD_BYTES", 4 << 20)
    async with server(JSON, lambda: repeat(CHUNK)) as client:
        with pytest.raises(ProtocolError):
            async with client.git.diff(uuid4(), "deck") as parts:
                taken = [len(part) async for part in parts]
                assert sum(taken) <= 4 << 20


async def lost(client: Client, events: bool) -> ClientError:
    streams: dict[bool, Callable[[], Any]] = {
        True: lambda: client.events.stream(uuid4(), 0),
        False: lambda: client.terminals.stream(uuid4(), uuid4(), 0),
    }
    async with streams[events]() as stream:
        async for item in stream:
            if isinstance(item, ConnectionLost):
                return item.error
    raise AssertionError("the stream ended")


@pytest.mark.parametrize(
    ("begin", "mib", "events"),
    [
        (b"data: ", 64, True),
        (b"data: x\n", 16, True),
        (b"id: ", 4, True),
        (b": comment ", 4, True),
        (b"data: ", 4, False),
    ],
)
async def test_an_endless_message_ends_the_connection(
    begin: bytes, mib: int, events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one endless line, or of endless lines."""
    if mib != connection_module.MESSAGE_CHARACTERS >> 20:
        monkeypatch.setattr(connection_module, "MESSAGE_CHARACTERS", mib << 20)
    lines = begin.endswith(b"\n")
    more = (b"data: " + b"x" * 1000 + b"\n") * 1000 if lines else CHUNK
    before = peak()
    async with server(STREAM, lambda: chain([begin], repeat(more))) as client:
        error = await lost(client, events)
    assert isinstance(error, ProtocolError) and "MiB" in error.message
    assert peak() - before < 320


def event(number: int, id: str | None = None, place: str | None = None) -> bytes:
    text = f'"id":"{id or uuid4()}","ts":"2026-01-02T00:00:00Z","type":"x","payload":{{}}'
    return f"id: {place or number}\ndata: {{{text}}}\n\n".encode()


async def test_places_that_cannot_be_sent_back_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor ids without a bound; and a long stream of short messages has none."""
    monkeypatch.setattr(connection_module, "MESSAGE_CHARACTERS", 20_000)
    places = ["9" * 5_000, "é", "\x01", "x" * 1_000]
    sent = [event(n, place=place) for n, place in enumerate(places)]
    sent += [event(n, id="i" * 10_000 + str(n)) for n in range(1, 300)]
    split = b"".join(sent)
    parts = [split[n : n + 997] for n in range(0, len(split), 997)]
    async with server(STREAM, lambda: iter(parts)) as client:
        stream = client.events.stream(uuid4(), None)
        received = 0
        async with stream:
            async for item in stream:
                if isinstance(item, ConnectionLost):
                    break
                received += isinstance(item, Received)
        assert received == len(sent)
        assert stream._cursor.place == "299"
        assert max(map(len, stream._cursor._ids)) <= 200  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        "inf",
        "nan",
        "1e400",
        "-5",
        "Mon, 01 Jan 2024 00:00:00 -0000",
        "x" * 60_000,
        "Mon, 99 Jan 99999 00:00:00 GMT",
    ],
)
async def test_every_retry_after_is_a_number_of_seconds_or_none(value: str) -> None:
    head = f"HTTP/1.1 409 X\nRetry-After: {value}\nConnection: close"
    async with server(head, lambda: iter([b"{}"])) as client:
        with pytest.raises(ResponseError) as error:
            await client.replicas.list()
    assert error.value.retry_after is None or 0 <= error.value.retry_after <= 86_400


HUGE = 10**400
GOAL = (
    '{"objective":"o","status":"active","tokens_used":%d,"time_used_seconds":%s,"token_budget":-%d}'
)
CHAT = (
    '{"chats":[{"id":"%s","provider":"x","created_at":"2026-01-02T00:00:00Z",'
    '"updated_at":"2026-01-02T00:00:00Z","title":"1, %d","goal":%s}]}'
)


async def test_numbers_that_cannot_be_shown_are_not_taken_over() -> None:
    """The screen divides and formats them."""
    id = uuid4()
    body = CHAT % (id, HUGE, GOAL % (HUGE, HUGE, HUGE))
    async with server(JSON, lambda: iter([body.encode()])) as client:
        (chat,) = await client.chats.list(id)
    assert chat.goal is not None and chat.title == f"1, {HUGE}"
    assert chat.goal.tokens_used == -(chat.goal.token_budget or 0) == LARGEST_NUMBER
    assert chat.goal.time_used_seconds <= LARGEST_NUMBER
    body = CHAT % (id, 1, GOAL % (1, "1e999", 1))
    async with server(JSON, lambda: iter([body.encode()])) as client:
        with pytest.raises(ProtocolError):
            await client.chats.list(id)


DEEP = b"[" + b"{}," * VALUES_LIMIT + b"{}]"
OF_MANY_VALUES: dict[str, tuple[bytes, Callable[[Client], Any]]] = {
    "events": (
        b'{"id":"1","ts":"2026-01-02T00:00:00Z","type":"x","payload":{"a":%b}}' % DEEP,
        lambda client: client.events.stream(uuid4(), 0),
    ),
    "terminal": (
        b'{"type":"resize","cols":80,"rows":24,"a":%b}' % DEEP,
        lambda client: client.terminals.stream(uuid4(), uuid4(), 0),
    ),
}


@pytest.mark.parametrize("stream", OF_MANY_VALUES)
async def test_a_message_of_many_values_is_left_out_before_it_is_read(stream: str) -> None:
    """They need a hundred times the memory of their text, and hold every key up meanwhile."""
    data, opened = OF_MANY_VALUES[stream]
    parts = [b"id: 1\ndata: " + data + b"\n\n"]
    async with server(STREAM, lambda: iter(parts)) as client, opened(client) as items:
        item = await anext(items)
    assert isinstance(item, Malformed) and "too many values" in item.error.message


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b'{"type":"complete","exit_code":%d}' % HUGE, LARGEST_NUMBER),
        (b'{"type":"complete","a":%b}' % DEEP, None),
    ],
)
async def test_a_message_of_a_hook_test_is_bounded(data: bytes, shown: int | None) -> None:
    async with server(STREAM, lambda: iter([b"data: " + data + b"\n\n"])) as client:
        events = client.hook_tests.stream_warm(uuid4())
        if shown is None:
            with pytest.raises(ProtocolError):
                await anext(events)
        else:
            assert (await anext(events)).exit_code == shown
        await events.aclose()


async def test_a_terminal_of_huge_offsets_is_read_again() -> None:
    data = b'data: {"type":"replay","offset":%s,"cols":80,"rows":24,"data":""}\n\n' % (b"9" * 4_000)
    async with server(STREAM, lambda: iter([data])) as client:
        assert isinstance(await lost(client, events=False), ClientError)


async def test_a_list_without_a_last_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (paging, inside, chats):
        monkeypatch.setattr(module, "MOST_PAGES", 5, raising=False)
    counts = '"total":9,"page":1,"limit":100,"total_pages":1000000000'
    moment = "2026-01-02T00:00:00Z"
    key = f'{{"id":"{uuid4()}","name":"n","key_prefix":"sk_a","created_at":"{moment}"}}'
    body = f'{{"api_keys":[{key}],{counts}}}'
    async with server(JSON, lambda: iter([body.encode()])) as client:
        with pytest.raises(ProtocolError, match="more than 5 pages"):
            async for _ in client.api_keys.all():
                pass
    sent = count()
    page = '{"thread_id":"x","events":[],"total":9,"has_more":true,"beforeCursor":"%d"}'
    async with server(JSON, lambda: iter([(page % next(sent)).encode()])) as client:
        with pytest.raises(ProtocolError, match="more than 5 pages"):
            async for _ in client.history.pages(uuid4()):
                pass
    body = f'{{"files":[],"nextCursor":"again","indexedAt":"{moment}","stale":false,"refreshing":false,"truncated":false}}'
    async with server(JSON, lambda: iter([body.encode()])) as client:
        with pytest.raises(ProtocolError, match="more than 5 pages"):
            await client.files.all(uuid4())


@pytest.mark.parametrize(
    "charset",
    [
        *("rot13", "rot-13", "base64", "hex", "zlib", "bz2", "idna", "punycode", "utf-7", "utf-16"),
        *("unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "unknown", "'", '"'),
        *("latin-1", "x" * 10_000, ""),
    ],
)
async def test_text_is_read_as_utf_8_whatever_the_server_declares(charset: str) -> None:
    """Codecs of Python that are named by a server fail in their own ways, or give other text."""
    head = STREAM.replace("event-stream", f"event-stream; charset={charset}")
    sent = event(1).replace(b'"payload":{}', '"payload":{"a":"+2AA- é"}'.encode())
    async with (
        server(head, lambda: iter([sent[:-9], sent[-9:]])) as client,
        client.events.stream(uuid4(), None) as stream,
    ):
        item = await anext(stream)
    assert isinstance(item, Received) and item.event.payload == {"a": "+2AA- é"}
    for status in ("200 OK", "409 X"):
        head = f"HTTP/1.1 {status}\nContent-Type: application/json; charset={charset}"
        async with server(head, lambda: iter([b'{"error":"x"}'])) as client:
            with pytest.raises((ProtocolError, ResponseError)):
                await client.replicas.list()


async def test_characters_that_no_text_has_are_replaced() -> None:
    """Such as a half of a pair, whatever parts it comes in."""
    sent = event(1).replace(b'"payload":{}', b'"payload":{"a":"\xed\xa0\x80\xff \xc3\xa9"}')
    async with (
        server(STREAM, lambda: (sent[n : n + 1] for n in range(len(sent)))) as client,
        client.events.stream(uuid4(), None) as stream,
    ):
        item = await anext(stream)
    assert isinstance(item, Received) and item.event.payload == {"a": "\ufffd" * 4 + " é"}
