"""Accepting links on the engine's socket."""

import asyncio
import logging
import os
import socket
from pathlib import Path

from quarterdeck.engine.connection import Connection
from quarterdeck.engine.methods import Methods
from quarterdeck.engine.tasks import Tasks
from quarterdeck.local.sockets import socket_address
from quarterdeck.wire.engine import SOCKET_NAME

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 3.0
_BACKLOG = 128


class RpcServer:
    """Listens until `close`. Every link is served by a task of its own."""

    def __init__(self, run_dir: Path, secret: str, methods: Methods) -> None:
        self._path = run_dir / SOCKET_NAME
        self._secret = secret
        self._methods = methods
        self._links = Tasks()
        self._calls = Tasks()
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Binds the socket; it appears under its name only when it answers.

        Raises:
            OSError: the run directory cannot be used.
        """
        listener = _bind(self._path)
        self._server = await asyncio.start_unix_server(self._accept, sock=listener)

    async def close(self) -> None:
        """Takes no more links and calls, sends what is under way, and ends the links."""
        self._path.unlink(missing_ok=True)
        if self._server is not None:
            self._server.close()
        await self._calls.wait(FLUSH_SECONDS)
        await self._calls.close()
        flushing = [connection.flush(FLUSH_SECONDS) for connection in self._connections]
        await asyncio.gather(*flushing)
        await self._links.wait(FLUSH_SECONDS)
        await self._links.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, self._secret, self._methods, self._calls)
        self._links.start(self._serve(connection), "link")

    async def _serve(self, connection: Connection) -> None:
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)


def _bind(path: Path) -> socket.socket:
    """A listening socket, mode 0600, made under another name and renamed into place."""
    making = path.with_name(f"{path.name}.{os.getpid()}")
    making.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)
        try:
            with socket_address(making) as address:
                listener.bind(address)
        finally:
            os.umask(mask)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        making.rename(path)
    except BaseException:
        listener.close()
        raise
    return listener
