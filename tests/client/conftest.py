"""A small HTTP server that can do what a real one should not."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.client import HttpConnection
from quarterdeck.client.error_mapping import Backoff

QUICK = Backoff(first=0.001, longest=0.002)


@dataclass
class Seen:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def after(self) -> str | None:
        return self.headers.get("last-event-id")


class Reply:
    """What a script may send to one request."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def json(
        self, value: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        body = json.dumps(value).encode()
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def open_stream(self, chunked: bool = False) -> None:
        framing = "Transfer-Encoding: chunked" if chunked else "Connection: close"
        await self.raw(
            f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}\r\n\r\n".encode()
        )

    async def chunk(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")


Script = Callable[[Seen, Reply], Awaitable[None]]


@dataclass
class TinyServer:
    """Runs a script for every request and closes the connection after it."""

    script: Script
    seen: list[Seen] = field(default_factory=list)
    address: str = ""
    open_connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.open_connections.add(task)
        try:
            seen = await _read(reader)
            if seen is not None:
                self.seen.append(seen)
                await self.script(seen, Reply(writer))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.open_connections.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, target, headers, body)


@asynccontextmanager
async def _serve(script: Script, socket: Path | None = None) -> AsyncGenerator[TinyServer]:
    tiny = TinyServer(script)
    if socket is None:
        server = await asyncio.start_server(tiny.handle, "127.0.0.1", 0)
        tiny.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    else:
        server = await asyncio.start_unix_server(tiny.handle, str(socket))
    try:
        yield tiny
    finally:
        server.close()
        for task in list(tiny.open_connections):
            task.cancel()
        await asyncio.gather(*tiny.open_connections, return_exceptions=True)
        await server.wait_closed()


ServeScript = Callable[..., AbstractAsyncContextManager[TinyServer]]


@pytest.fixture
def tiny_server() -> ServeScript:
    """Serves a script: `async with tiny_server(script) as server`."""
    return _serve


@pytest.fixture
def quick() -> Backoff:
    """Back-off that does not hold a test up."""
    return QUICK


@pytest.fixture
def connect() -> Callable[..., HttpConnection]:
    """A connection to a tiny server, with quick retries."""

    def make(server: TinyServer, **options: Any) -> HttpConnection:
        return HttpConnection(server.address, "sk_secret", **({"pace": QUICK} | options))

    return make
