"""The transport to a service on this machine, against a server that does what it is told."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from quarterdeck.client.connection import LIMITS
from quarterdeck.client.local_transport import LocalTransport

OK = b"HTTP/1.1 200 OK\r\nX-Name: Kept\r\nContent-Length: 2\r\n\r\nhi"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Served:
    """A server on loopback. Each of its connections is passed to `script`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.url = ""
        self.connections = 0
        self.closed = asyncio.Event()
        """Set when a connection was closed by the client."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._script(reader, writer)
            if not await reader.read():
                self.closed.set()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def end(self) -> None:
        """End what the scripts still do."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def served(
    script: Script, limits: httpx.Limits = LIMITS
) -> AsyncGenerator[tuple[Served, httpx.AsyncClient]]:
    server = Served(script)
    async with await asyncio.start_server(server.handle, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        transport = LocalTransport(None, limits)
        async with httpx.AsyncClient(transport=transport, base_url=server.url, timeout=5) as client:
            yield server, client
        await server.end()


async def _head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def _answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        while await _head(reader):
            writer.write(OK)


async def _begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the first part of a body that does not end."""
    await _head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")


async def test_one_connection_serves_requests_one_after_the_other():
    async with served(_answer_all) as (server, client):
        for _ in range(3):
            answer = await client.get("/a")
            assert (answer.status_code, answer.text) == (200, "hi")
            assert (b"X-Name", b"Kept") in answer.headers.raw
        assert server.connections == 1


async def test_requests_at_the_same_time_have_their_own_connections():
    both = asyncio.Barrier(2)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        await both.wait()
        writer.write(OK)

    async with served(script) as (server, client):
        await asyncio.gather(client.get("/a"), client.get("/b"))
        assert server.connections == 2


async def test_a_connection_that_the_server_closed_is_not_used_again():
    closed = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(OK)
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with served(script) as (server, client):
        await client.get("/a")
        await closed.wait()
        assert (await client.post("/b")).text == "hi"
        assert server.connections == 2


async def test_an_idle_connection_is_closed_when_it_is_too_old():
    limits = httpx.Limits(max_keepalive_connections=5, keepalive_expiry=0.0)
    async with served(_answer_all, limits) as (server, client):
        await client.get("/a")
        await client.get("/b")
        await server.closed.wait()
        assert server.connections == 2


async def test_a_body_in_parts_and_an_answer_in_chunks():
    received = b""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await _head(reader)
        received = await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    async def parts() -> AsyncGenerator[bytes]:
        yield b"first"
        yield b"second"

    async with served(script) as (_, client):
        answer = await client.post("/a", content=parts())
        assert (answer.status_code, answer.reason_phrase, answer.text) == (201, "Made", "abcde")
        assert received == b"5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"


async def test_an_answer_before_the_end_of_the_body(tmp_path: Path):
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(b"HTTP/1.1 413 Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()  # the rest is not read

    path = str(tmp_path / "s")
    async with await asyncio.start_unix_server(refuse, path):
        transport = LocalTransport(path, LIMITS)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for _ in range(5):
                assert (await client.post("/a", content=b"x" * (8 << 20))).status_code == 413


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"noise"])
async def test_bytes_that_answer_nothing_are_not_taken_for_an_answer(more: bytes):
    sent = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(OK)
        await writer.drain()
        await asked.wait()
        writer.write(more)
        await writer.drain()
        sent.set()

    asked = asyncio.Event()
    async with served(script) as (server, client):
        await client.get("/a")
        asked.set()
        await sent.wait()
        assert (await client.post("/b")).text == "hi"
        assert server.connections == 2


async def test_bytes_after_an_answer_end_the_connection():
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(OK + b"more")

    async with served(script) as (server, client):
        for _ in range(2):
            assert (await client.get("/a")).text == "hi"
        assert server.connections == 2


async def test_closing_ends_a_stream_that_is_read():
    async with served(_begin) as (server, client):
        async with client.stream("GET", "/a") as answer:
            parts = answer.aiter_bytes()
            assert await anext(parts) == b"a"
            reading = asyncio.ensure_future(anext(parts))
            await client.aclose()
            with pytest.raises(httpx.RemoteProtocolError):
                await reading
        await server.closed.wait()


async def test_a_stream_that_is_left_closes_its_connection():
    async with served(_begin) as (server, client):
        async with client.stream("GET", "/a") as answer:
            async for part in answer.aiter_bytes():
                assert part == b"a"
                break
        await server.closed.wait()


async def test_a_canceled_request_closes_its_connection():
    asked = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        asked.set()

    async with served(script) as (server, client):
        request = asyncio.create_task(client.get("/a"))
        await asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await server.closed.wait()


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Le", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", httpx.RemoteProtocolError),
        (b"nothing of the kind\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, httpx.RemoteProtocolError),
        (b"HTTP/1.1 101 Other\r\nUpgrade: other\r\n\r\n", httpx.RemoteProtocolError),
    ],
)
async def test_what_is_no_answer(sent: bytes, error: type[Exception]):
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(sent)
        writer.write_eof()

    async with served(script) as (_, client):
        with pytest.raises(error):
            await client.get("/a")


async def test_a_server_that_says_nothing():
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)

    async with served(script) as (_, client):
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/a", timeout=0.01)


async def test_a_server_that_reads_nothing():
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with served(script) as (_, client):
        with pytest.raises(httpx.WriteTimeout):
            await client.post("/a", content=b"x" * (32 << 20), timeout=httpx.Timeout(5, write=0.05))


async def test_nobody_listens(tmp_path: Path):
    for transport, url in (
        (LocalTransport(str(tmp_path / "none"), LIMITS), "http://localhost/"),
        (LocalTransport(None, LIMITS), "http://127.0.0.1:1/"),
    ):
        async with httpx.AsyncClient(transport=transport) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(url)


READS_NOTHING_ELSE = """
import asyncio, sys
from quarterdeck.client import Client, HttpConnection
from quarterdeck.client.errors import UnreachableError

async def main():
    async with Client(HttpConnection("http://127.0.0.1:1", "key")) as client:
        try:
            await client.health.get()
        except UnreachableError:
            print(sorted({"httpcore", "anyio"} & sys.modules.keys()))

asyncio.run(main())
"""


def test_a_local_service_needs_no_other_library():
    argv = [sys.executable, "-c", READS_NOTHING_ELSE]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "[]\n"
