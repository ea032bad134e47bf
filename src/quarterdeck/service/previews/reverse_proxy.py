"""The reverse proxy in front of previews.

A connection is passed on to the program in the workspace request by request, as each names its own
preview. Both sides are HTTP/1.1. After a switch of protocols (a websocket) bytes go both ways until
either side ends. What is under way ends with its preview.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import h11

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError, ListenError, ServiceError, StorageError
from quarterdeck.service.http_protocol import (
    HEAD_SECONDS,
    HEADERS,
    Acceptor,
    AdmittedPeer,
    Connections,
    limits_here,
)
from quarterdeck.service.listeners import (
    Bound,
    Entrance,
    PreviewListener,
    bind,
    listens_here,
)
from quarterdeck.service.previews.addresses import (
    HOST,
    PreviewAddress,
    browser_url,
    read_address,
)
from quarterdeck.service.previews.headers import for_client, for_upstream, value_of
from quarterdeck.service.previews.rows import (
    PreviewTarget,
    count_previews,
    find_target,
    keep_port,
    kept_port,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

HEAD_BYTES = 64 << 10
READ_BYTES = 64 << 10
IDLE_SECONDS = 60.0
"""Time without a request after which a connection is closed."""
CONNECT_SECONDS = 5.0
STALL_SECONDS = 300.0
"""Time in which a program reads less than 64 KB of what waits, after which its connection ends."""

Event = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]


class PreviewRefusedError(Exception):
    """The request cannot be passed on: a status, and a line for a person."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ConnectionAcceptor(Protocol):
    """What a connection needs from the server that accepted it."""

    async def resolve(self, token: str) -> PreviewTarget:
        """Return the target of a preview; raises `PreviewRefusedError`."""
        ...

    async def dial(
        self, target: PreviewTarget
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the program of a preview; raises `PreviewRefusedError`."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """Register the connection while no request has come."""
        ...

    def exchanging(self, target: PreviewTarget) -> AbstractContextManager[None]:
        """Register the connection while a request is passed on; raises `PreviewRefusedError`."""
        ...


@dataclass(frozen=True)
class ProxySide:
    """One side: its protocol state and its stream."""

    state: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    stall_seconds: float | None = None
    """How long the other end may read too little to be sent more; None: without limit."""

    async def receive(self) -> Event:
        """Return the next event, reading as much as needed."""
        while (event := self.state.next_event()) is h11.NEED_DATA:
            self.state.receive_data(await self.reader.read(READ_BYTES))
        return event

    async def send(self, event: h11.Event) -> None:
        """Send one event."""
        if data := self.state.send(event):
            await self.write(data)

    async def write(self, data: bytes) -> None:
        """Send bytes; raises TimeoutError when the other end does not read."""
        self.writer.write(data)
        async with asyncio.timeout(self.stall_seconds):
            await self.writer.drain()


async def serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, entry: ConnectionAcceptor
) -> None:
    """Serve a client's connection to its end."""
    client = ProxySide(h11.Connection(h11.SERVER, HEAD_BYTES), reader, writer)
    try:
        seconds = HEAD_SECONDS
        while await _serve_request(client, entry, seconds):
            client.state.start_next_cycle()
            seconds = IDLE_SECONDS
    except (OSError, h11.ProtocolError, TimeoutError):
        return  # either side has disconnected, or speaks another protocol
    finally:
        writer.close()


async def _serve_request(client: ProxySide, entry: ConnectionAcceptor, seconds: float) -> bool:
    """Pass one request on; False when the connection cannot be used again."""
    with entry.waiting():
        async with asyncio.timeout(seconds):
            request = await client.receive()
    if not isinstance(request, h11.Request):
        return False
    try:
        address, target = await _find(request, entry)
        with entry.exchanging(target):
            return await _pass_on(client, request, address, target, entry)
    except PreviewRefusedError as e:
        await _refuse(client, e)
        return False


async def _pass_on(
    client: ProxySide,
    request: h11.Request,
    address: PreviewAddress,
    target: PreviewTarget,
    entry: ConnectionAcceptor,
) -> bool:
    reader, writer = await entry.dial(target)
    program = ProxySide(h11.Connection(h11.CLIENT, HEAD_BYTES), reader, writer, STALL_SECONDS)
    try:
        return await _exchange(client, program, request, address, target.port)
    except (OSError, h11.ProtocolError) as e:
        if client.state.our_state is not h11.SEND_RESPONSE:
            raise
        name = f"The program on port {target.port} of the replica"
        if isinstance(e, TimeoutError):
            raise PreviewRefusedError(504, f"{name} does not read the request.") from e
        raise PreviewRefusedError(502, f"{name} did not answer with HTTP.") from e
    finally:
        writer.close()
        # What the program has not read keeps the connection open.
        if writer.transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(STALL_SECONDS, _abort, writer)


def _abort(writer: asyncio.StreamWriter) -> None:
    if writer.transport.get_write_buffer_size():  # else it has ended meanwhile
        writer.transport.abort()


async def _find(
    request: h11.Request, entry: ConnectionAcceptor
) -> tuple[PreviewAddress, PreviewTarget]:
    if len(request.headers) > HEADERS:
        raise PreviewRefusedError(431, f"A request has at most {HEADERS} headers.")
    host = value_of(request.headers, b"host").decode("latin-1")
    address = read_address(host, request.target.decode("latin-1"))
    if address is None:
        raise PreviewRefusedError(404, "There is no preview at this address.")
    target = await entry.resolve(address.token)
    if address.base and value_of(request.headers, b"sec-fetch-mode") == b"navigate":
        raise PreviewRefusedError(307, browser_url(host, address))
    if address.base and value_of(request.headers, b"service-worker"):
        own = browser_url(host, address)
        raise PreviewRefusedError(403, f"A service worker needs the preview's own host: {own}")
    return address, target


async def _refuse(client: ProxySide, error: PreviewRefusedError) -> None:
    text = f"{error}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
    if error.status == 307:
        headers.append(("Location", str(error)))
    headers.append(("Content-Length", str(len(text))))
    await client.send(h11.Response(status_code=error.status, headers=headers))
    if client.state.their_state is not h11.ERROR:
        await client.send(h11.Data(data=text))
        await client.send(h11.EndOfMessage())
    async with asyncio.timeout(CLOSE_SECONDS):
        # A connection that is closed with unread bytes may take the answer from the client.
        while client.state.their_state is h11.SEND_BODY:
            await client.receive()


async def _exchange(
    client: ProxySide, program: ProxySide, request: h11.Request, address: PreviewAddress, port: int
) -> bool:
    await program.send(
        h11.Request(
            method=request.method,
            target=address.target,
            headers=for_upstream(request.headers.raw_items(), address, port),
        )
    )
    passing = _pass_body(client, program), _pass_answer(program, client, address)
    async with _racing(*passing) as (sending, answering):
        left = not answering.done() and not isinstance(sending.exception(), ConnectionError)
        if left and sending.result():
            return False
        switched = await answering
    if switched:
        async with _racing(_pipe(client, program), _pipe(program, client)):
            return False
    return client.state.our_state is h11.DONE and client.state.their_state is h11.DONE


async def _pass_body(client: ProxySide, program: ProxySide) -> bool:
    """Pass the request's body on, then watch the client; True when it has left.

    The program may send nothing for long, and the connection would stay open for nobody.
    """
    while True:
        try:
            event = await client.receive()
        except (OSError, h11.RemoteProtocolError):
            return True
        match event:
            case h11.Data() | h11.EndOfMessage():
                await program.send(event)
            case h11.ConnectionClosed():
                return True
            case _:
                return await _has_left(client)


async def _has_left(client: ProxySide) -> bool:
    """Wait until the client leaves; False when it sends much of what comes after the answer.

    That is the next request, or bytes of another protocol, and it is kept.
    """
    while len(client.state.trailing_data[0]) < HEAD_BYTES:
        try:
            data = await client.reader.read(READ_BYTES)
        except OSError:
            return True
        if not data:
            return True
        client.state.receive_data(data)
    return False


async def _pass_answer(program: ProxySide, client: ProxySide, address: PreviewAddress) -> bool:
    """Pass the response on to its end; True when the protocol was switched."""
    while True:
        event = await program.receive()
        match event:
            case h11.InformationalResponse() | h11.Response():
                switching = event.status_code == 101
                headers = for_client(event.headers.raw_items(), address, switching)
                kind = type(event)
                await client.send(
                    kind(status_code=event.status_code, headers=headers, reason=event.reason)
                )
                if switching:
                    return True
            case h11.Data():
                await client.send(event)
            case h11.EndOfMessage():
                await client.send(h11.EndOfMessage())
                return False
            case _:
                raise ConnectionError("The program ended before its answer did.")


@asynccontextmanager
async def _racing(
    *work: Coroutine[Any, Any, bool | None],
) -> AsyncGenerator[list[asyncio.Task[bool | None]]]:
    """Run both until the first one ends; those that still run at the end are canceled."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pipe(source: ProxySide, target: ProxySide) -> None:
    data = source.state.trailing_data[0]
    while True:
        if data:
            await target.write(data)
        if not (data := await source.reader.read(READ_BYTES)):
            return


CLOSE_SECONDS = 10.0
"""Time for a client to read the end of a response."""

log = logging.getLogger(__name__)


class PreviewServer:
    """Listens from the first preview on, after a restart again on the same port if possible."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database
        self._home = context.home_id
        self._opening = asyncio.Lock()
        self._bound: Bound | None = None
        self._acceptor: Acceptor | None = None
        limits = limits_here()
        self._accepted = Connections(limits)
        self._exchanges = Connections(limits)
        self._most_waiting = limits.of[Entrance.PREVIEW] // 2
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], None] = {}
        """Connections on which no request has come yet, the oldest first."""
        self._exchanging: dict[asyncio.Task[None], PreviewTarget] = {}
        self._endings = 0

    async def start(self) -> None:
        """Listen if there are previews; a failure does not prevent the start."""
        if await self._database.read(lambda c: count_previews(c, self._home)):
            try:
                await self.listen()
            except ApiError as e:
                log.error("Previews cannot be served: %s", e.message)

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._acceptor is not None:
            await self._acceptor.close()
        if self._bound is not None:
            self._bound.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def end(self, workspace_id: str, port: int | None = None) -> None:
        """End what is passed on to a preview, or to all of a workspace.

        Call this after the change that refuses further requests was committed.
        """
        self._endings += 1
        for task, target in self._exchanging.items():
            if target.workspace_id == workspace_id and port in (None, target.port):
                task.cancel()

    async def listen(self) -> int:
        """Listen, and return the port.

        Raises:
            ApiError: INTERNAL_ERROR when no socket can be opened.
        """
        async with self._opening:
            if self._bound is None:
                self._bound = await self._open()
                self._acceptor = Acceptor(self._bound, self._accepted, self._protocol)
            return self._bound.socket.getsockname()[1]

    def _protocol(self, peer: AdmittedPeer) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(
            asyncio.StreamReader(), lambda reader, writer: self._serve(reader, writer, peer)
        )

    async def _open(self) -> Bound:
        kept = await self._database.read(lambda c: kept_port(c, self._home))
        if kept is not None:
            try:
                return bind(PreviewListener(HOST, kept))
            except ListenError as e:
                log.warning("The addresses of previews change: %s", e)
        try:
            opened = bind(PreviewListener(HOST, 0))
        except ListenError as e:
            raise ApiError(ErrorCode.INTERNAL_ERROR, f"Previews cannot be served. {e}") from e
        if kept is None:
            port = opened.socket.getsockname()[1]
            await self._database.write(lambda c: keep_port(c, self._home, port))
        return opened

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: AdmittedPeer
    ) -> None:
        task = _this_task()
        self._connections.add(task)
        try:
            await serve_connection(reader, writer, self)
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await writer.wait_closed()
        except asyncio.CancelledError:
            return  # the service stops, the preview ended, or others wait; nobody awaits this task but `close`
        finally:
            writer.transport.abort()
            self._connections.discard(task)
            self._accepted.release(peer.entrance, peer.peer)

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Register a connection that waits for a request.

        When too many wait, the oldest one is closed: a client that sends a request at once is
        served, however many idle connections others open.
        """
        if len(self._waiting) >= self._most_waiting:
            next(iter(self._waiting)).cancel()
            reason = f"{self._most_waiting} connections without one"
            self._accepted.note_refused(Entrance.PREVIEW, "", reason)
        task = _this_task()
        self._waiting[task] = None
        try:
            yield
        finally:
            del self._waiting[task]

    @contextmanager
    def exchanging(self, target: PreviewTarget) -> Generator[None]:
        """Register a connection that is passed on to a workspace.

        Raises:
            PreviewRefusedError: the workspace has too many.
        """
        replica = f"replica {target.workspace_id}"
        if not self._exchanges.admit(Entrance.PREVIEW, replica):
            raise PreviewRefusedError(503, "The replica of this preview has too many connections.")
        task = _this_task()
        self._exchanging[task] = target
        try:
            yield
        finally:
            del self._exchanging[task]
            self._exchanges.release(Entrance.PREVIEW, replica)

    async def dial(
        self, target: PreviewTarget
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the program of a preview.

        Raises:
            PreviewRefusedError: nothing listens there, or only the service itself.
        """
        port = target.port
        try:
            driver = await self._context.driver(target.workspace_id)
            if self._context.drivers.is_local(driver) and listens_here(port):
                raise PreviewRefusedError(
                    502, f"Port {port} is the service's own, and has no preview."
                )
            async with asyncio.timeout(CONNECT_SECONDS):
                return await driver.dial(target.workspace_id, port)
        except (OSError, SandboxError, ServiceError) as e:
            raise PreviewRefusedError(502, f"Nothing listens on port {port} of the replica.") from e

    async def resolve(self, token: str) -> PreviewTarget:
        """Return the target of a token while its workspace is active, and so owns the port."""
        endings = -1
        target = None
        while endings != self._endings:  # else `end` was called after the read, and found nothing
            endings = self._endings
            try:
                target = await self._database.read(lambda c: find_target(c, self._home, token))
            except StorageError as e:
                raise PreviewRefusedError(503, "The service's database cannot be read.") from e
        if target is None:
            raise PreviewRefusedError(404, "There is no preview at this address.")
        if target.status != WorkspaceStatus.ACTIVE:
            raise PreviewRefusedError(503, f"The replica of this preview is {target.status}.")
        return target


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task
