"""Plain HTTP/1.1 to a service on this machine, over a unix socket or loopback.

The transport that httpx has of its own imports httpcore and anyio with the first request. That takes about
30 ms, a sixteenth of the cockpit's start, and 3 MB of memory. With TLS or a proxy it is used all the same.
The protocol is h11's in both.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager, suppress
from ipaddress import ip_address
from select import POLLIN, poll
from time import monotonic
from typing import Any, cast

import h11
import httpx

READ_BYTES = 64 << 10
HEAD_BYTES = 100 << 10
"""Most bytes of an answer's head."""
MOST_INTERIM = 32
"""Most interim responses, such as 103, before the final one: an endless series would block the event loop."""


class LocalTransport(httpx.AsyncBaseTransport):
    """One connection for each request under way; idle ones are used again."""

    def __init__(self, address: str | None, limits: httpx.Limits) -> None:
        """`address` is that of a unix socket; without one a request's own host is connected to."""
        self._address = address
        self._most_idle = limits.max_keepalive_connections or 0
        self._idle_seconds = limits.keepalive_expiry or 0.0
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its answer, whose body is read as it is iterated.

        Raises:
            httpx.TransportError: as the transport of httpx does.
        """
        connection = self._reusable() or await self._connect(request)
        self._busy.add(connection)
        try:
            await connection.send(request)
            head = await connection.head()
        except BaseException:
            self._drop(connection)
            raise
        return httpx.Response(
            head.status_code,
            headers=head.headers.raw_items(),
            stream=_Body(self, connection),
            extensions={
                "http_version": b"HTTP/" + head.http_version,
                "reason_phrase": bytes(head.reason),
            },
        )

    async def aclose(self) -> None:
        self._most_idle = 0
        while self._idle:
            self._idle.pop().close()
        for connection in self._busy:
            connection.cut()

    def release(self, connection: "_Connection") -> None:
        """Keep a connection for the next request, if its answer was read to the end; close it otherwise."""
        if connection.next_cycle() and len(self._idle) < self._most_idle:
            self._busy.discard(connection)
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: "_Connection") -> None:
        self._busy.discard(connection)
        connection.close()

    def _reusable(self) -> "_Connection | None":
        known, self._idle = self._idle, []
        for connection in known:
            if connection.is_usable(self._idle_seconds):
                self._idle.append(connection)
            else:
                connection.close()
        return self._idle.pop() if self._idle else None

    async def _connect(self, request: httpx.Request) -> "_Connection":
        url, seconds = request.url, _seconds(request, "connect")
        with _httpx_errors(httpx.ConnectError, httpx.ConnectTimeout):
            async with asyncio.timeout(seconds):
                if self._address is not None:
                    return _Connection(await _open(socket.AF_UNIX, self._address))
                return _Connection(await _open_tcp(url.host, url.port or 80))


class _Connection:
    """A connection and what h11 knows of it."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._loop = asyncio.get_running_loop()
        self._protocol = h11.Connection(h11.CLIENT, HEAD_BYTES)
        self._read_seconds: float | None = None
        self._idle_since = 0.0

    async def send(self, request: httpx.Request) -> None:
        """Send a request with its body; an answer may come before the end of that."""
        self._read_seconds = _seconds(request, "read")
        seconds = _seconds(request, "write")
        with _httpx_errors(httpx.WriteError, httpx.WriteTimeout):
            head = h11.Request(
                method=request.method, target=request.url.raw_path, headers=request.headers.raw
            )
        body = cast(httpx.AsyncByteStream, request.stream)
        # A server that refuses a request may answer and close before it has read all of it.
        with suppress(httpx.WriteError):
            await self._write(head, seconds)
            async for part in body:
                await self._write(h11.Data(part), seconds)
            await self._write(h11.EndOfMessage(), seconds)

    async def _write(self, event: h11.Event, seconds: float | None) -> None:
        with _httpx_errors(httpx.WriteError, httpx.WriteTimeout):
            data = self._protocol.send(event)
            if data:
                async with asyncio.timeout(seconds):
                    await self._loop.sock_sendall(self._socket, data)

    async def head(self) -> h11.Response:
        """Return the head of the answer."""
        for _ in range(MOST_INTERIM + 1):
            if isinstance(event := await self._next(), h11.Response):
                return event
        raise httpx.RemoteProtocolError("Too many interim responses.")

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the body of the answer in parts."""
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _next(self) -> h11.Event:
        with _httpx_errors(httpx.ReadError, httpx.ReadTimeout):
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(self._read_seconds):
                    data = await self._loop.sock_recv(self._socket, READ_BYTES)
                await asyncio.sleep(0)  # received data is read without waiting: let other tasks run
                if not data and self._protocol.their_state is h11.SEND_RESPONSE:
                    raise httpx.RemoteProtocolError(
                        "Server disconnected without sending a response."
                    )
                self._protocol.receive_data(data)
        return cast(h11.Event, event)

    def next_cycle(self) -> bool:
        """Be ready for another request; false where this was the last."""
        states = self._protocol.our_state, self._protocol.their_state
        if states != (h11.DONE, h11.DONE) or self._protocol.trailing_data[0]:
            return False
        self._protocol.start_next_cycle()
        self._idle_since = monotonic()
        return True

    def is_usable(self, idle_seconds: float) -> bool:
        """Return whether an idle connection is fresh, still open, and has received nothing."""
        readable = poll()
        readable.register(self._socket, POLLIN)
        return monotonic() - self._idle_since < idle_seconds and not readable.poll(0)

    def cut(self) -> None:
        """End what is sent and received; its user gets an error and closes it."""
        with suppress(OSError):  # the other side was quicker
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


class _Body(httpx.AsyncByteStream):
    def __init__(self, transport: LocalTransport, connection: _Connection) -> None:
        self._transport = transport
        self._connection: _Connection | None = connection

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        assert self._connection is not None
        async with aclosing(self._connection.body()) as parts:
            async for part in parts:
                yield part

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.release(connection)


async def _open_tcp(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        pass
    else:
        return await _open(family, (host, port))
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    *others, last = [(family, address) for family, *_, address in found]
    for family, address in others:
        with suppress(OSError):  # the next address may answer
            return await _open(family, address)
    return await _open(*last)


async def _open(family: int, address: Any) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        if family != socket.AF_UNIX:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(opened, address)
    except BaseException:
        opened.close()
        raise
    return opened


def _seconds(request: httpx.Request, of: str) -> float | None:
    return request.extensions.get("timeout", {}).get(of)


@contextmanager
def _httpx_errors(
    broken: type[httpx.NetworkError], late: type[httpx.TimeoutException]
) -> Generator[None]:
    """Raise errors of sockets and of the protocol as those of httpx."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:
        raise broken(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from error
