"""The WebSockets of engines in containers, which are served before any route.

Imported only where replicas run in containers: the libraries are not needed otherwise.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.switchboard import OfferedConnection
from quarterdeck.service.errors import StorageError
from quarterdeck.service.fleet.leases import Leases
from quarterdeck.service.middleware import bearer_of
from quarterdeck.wire.base import CANONICAL_ID
from quarterdeck.wire.dial_home import BOOT_PATH, OPENED, PART_BYTES, WORKSPACE_HEADER

_WORKSPACE = WORKSPACE_HEADER.lower().encode()

log = logging.getLogger(__name__)


FRAMES_AT_ONCE = 64
"""After so many frames of one connection the others have their turn."""
FEED_BYTES = 1 << 10
"""Bytes that are read between two looks at how many frames they were: 170 at most."""


class LinkProtocol(WebSocketsSansIOProtocol):
    """A WebSocket on a connection that was counted when it was accepted.

    The other end may be hostile. Frames that cost more than they carry must not keep the service from
    its other work, so they are read a few at a time, and none before the connection is accepted.
    """

    def __init__(self, *, on_lost: Callable[[], None], **given: Any) -> None:
        super().__init__(**given)
        self._on_lost = on_lost
        self._unread = memoryview(b"")
        self._reading: asyncio.Handle | None = None
        self._owed = b""
        """Answers to the latest pings, for which there was no room."""

    def data_received(self, data: bytes) -> None:
        """Read the head, or frames."""
        self.transport.pause_reading()
        if self.handshake_initiated:
            self._unread = memoryview(b"".join((self._unread, data)))
            self._read()
            return
        super().data_received(data)
        if not self.handshake_initiated:  # a head that only the parser for HTTP accepts
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()

    def handle_text(self, event: Frame) -> None:
        """Take a text as bytes: one that cannot be decoded would fill the log."""
        self.handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Keep a part of a message. Empty parts are dropped, because their number has no limit."""
        if event.data or event.fin:
            super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer, or keep the latest answer until the other end reads."""
        answers = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(answers)
        else:
            self._owed = answers

    def keepalive_timeout(self) -> None:
        """End the connection at once: what waits to be sent would keep it open while the other end is away."""
        super().keepalive_timeout()
        self.transport.abort()

    def resume_writing(self) -> None:
        """Send what waited."""
        super().resume_writing()
        owed, self._owed = self._owed, b""
        self.transport.write(owed)

    async def receive(self) -> Any:
        """Return the next message; more are read when all were taken."""
        message = await self.queue.get()
        if self.queue.empty():
            self.read_paused = False
            self._read_later()
        return message

    async def send(self, message: Any) -> None:
        """Send; a refusal is complete with its body, which the server would report as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True
        elif message["type"] != "websocket.send":  # accepted, or discarded from now on
            self._read_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        super().connection_lost(exc)
        self._on_lost()

    def _read_later(self) -> None:
        if self._reading is None:
            self._reading = self.loop.call_soon(self._read)

    def _read(self) -> None:
        self._reading = None
        frames = 0
        while self.handshake_complete and not self.read_paused and not self.transport.is_closing():
            if not self._unread:
                self.transport.resume_reading()
                return
            if frames >= FRAMES_AT_ONCE:
                self._read_later()
                return
            part, self._unread = self._unread[:FEED_BYTES], self._unread[FEED_BYTES:]
            self.conn.receive_data(bytes(part))
            if self.conn.parser_exc is not None:
                self.handle_parser_exception()
                return
            frames += len(self.conn.events)
            self.handle_events()


async def serve_engine(leases: Leases, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one WebSocket to its end.

    One whose workspace another service has is refused with 503: the engine dials again.
    """
    switchboard = leases.switchboard
    headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
    workspace_id = headers.get(_WORKSPACE, b"").decode("latin-1")
    token = bearer_of(headers.get(b"authorization", b"").decode("latin-1"))
    await receive()  # its beginning
    try:
        if token is None or not CANONICAL_ID.fullmatch(workspace_id):
            await _refuse(send, 401)
        elif (elsewhere := not await leases.holds(workspace_id)) and scope["path"] == BOOT_PATH:
            await _refuse(send, 503)
        elif scope["path"] == BOOT_PATH:
            await _boot(switchboard.open_boot(workspace_id, token), receive, send)
        elif not await switchboard.admits(workspace_id, token):
            leases.note_refused(workspace_id)
            await _refuse(send, 403)
        elif elsewhere and not await leases.take_over(workspace_id, token):
            await _refuse(send, 503)
        else:
            await send({"type": "websocket.accept"})
            with switchboard.offer(workspace_id, token) as connection:
                await _wait(connection, receive, send)
    except (SandboxError, StorageError) as error:
        log.warning("A container of %s cannot be judged: %s", workspace_id, error)
        await _refuse(send, 503)
    except OSError:
        return  # the engine has disconnected


async def _refuse(send: Send, status: int) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": []})
    await send({"type": "websocket.http.response.body", "body": b""})


async def _boot(text: str | None, receive: Receive, send: Send) -> None:
    if text is None:
        await _refuse(send, 403)
        return
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": text})
    await receive()  # the engine ends the connection once it has read it


async def _wait(connection: OfferedConnection, receive: Receive, send: Send) -> None:
    """Wait until the connection is taken, and carry its bytes."""
    message = asyncio.ensure_future(receive())
    ended = asyncio.create_task(connection.ended.wait())
    try:
        await asyncio.wait({message, ended, connection.taken}, return_when=asyncio.FIRST_COMPLETED)
        if connection.taken.done():
            destination, half = connection.taken.result()
            await send({"type": "websocket.send", "text": destination.model_dump_json()})
            if destination.port is not None:
                await asyncio.wait({message, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not message.done() or message.result().get("bytes") != OPENED.encode():
                    return
                connection.opened.set_result(True)
                message = asyncio.ensure_future(receive())
            await _carry(half, message, ended, receive, send)
        heard = message.done() and not message.cancelled()
        if not (heard and message.result()["type"] == "websocket.disconnect"):
            await send({"type": "websocket.close"})
    finally:
        for task in (message, ended):
            task.cancel()
        await asyncio.gather(message, ended, return_exceptions=True)


async def _carry(
    half: socket.socket,
    first: Awaitable[Any],
    ended: asyncio.Task[Any],
    receive: Receive,
    send: Send,
) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=half)
    pipes = {
        asyncio.create_task(_to_service(first, receive, writer), name="bytes from an engine"),
        asyncio.create_task(_to_engine(reader, send), name="bytes to an engine"),
    }
    try:
        await asyncio.wait({*pipes, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
        writer.close()


async def _to_service(
    first: Awaitable[Any], receive: Receive, writer: asyncio.StreamWriter
) -> None:
    message = await first
    try:
        while message["type"] == "websocket.receive":
            writer.write(message.get("bytes") or b"")
            await writer.drain()
            message = await receive()
    except OSError:
        return  # the service has ended the stream


async def _to_engine(reader: asyncio.StreamReader, send: Send) -> None:
    try:
        while data := await reader.read(PART_BYTES):
            await send({"type": "websocket.send", "bytes": data})
    except OSError:
        return  # the engine has disconnected
