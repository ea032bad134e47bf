"""Accepts links on the engine's socket."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from quarterdeck.engine.connection import EngineConnection
from quarterdeck.engine.methods import Methods
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.local.sockets import socket_address
from quarterdeck.wire.engine import SOCKET_NAME

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 3.0
_BACKLOG = 128


class RpcServer:
    """Listens until `close`. Every link is served by its own task."""

    def __init__(
        self,
        run_dir: Path,
        secret: str,
        methods: Methods,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._path = run_dir / SOCKET_NAME
        self._secret = secret
        self._methods = methods
        self._links = TaskOwner()
        self._calls = TaskOwner()
        self._connections: set[EngineConnection] = set()
        self._server: asyncio.Server | None = None
        self._now = now
        self._alone_since = now()

    @property
    def alone_seconds(self) -> float:
        """How long ago the last link ended; 0 while there is one."""
        return 0.0 if self._connections else self._now() - self._alone_since

    async def start(self) -> None:
        """Bind the socket; it appears under its name only once it accepts links.

        Raises:
            OSError: the run directory cannot be used.
        """
        listener = _bind(self._path)
        self._server = await asyncio.start_unix_server(self._accept, sock=listener)

    async def close(self) -> None:
        """Accept no more links and calls, finish running ones, and end the links."""
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
        connection = EngineConnection(reader, writer, self._secret, self._methods, self._calls)
        self._links.start(self._serve(connection), "link")

    async def _serve(self, connection: EngineConnection) -> None:
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            self._alone_since = self._now()


def _bind(path: Path) -> socket.socket:
    """Return a listening socket, mode 0600, made under another name and renamed into place."""
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
