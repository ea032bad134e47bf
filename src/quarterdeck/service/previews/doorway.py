"""The loopback socket that all previews are looked at through."""

import asyncio
import logging
import socket

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError, ListenError, StorageError
from quarterdeck.service.listeners import TcpListener, bind
from quarterdeck.service.previews.addresses import HOST
from quarterdeck.service.previews.exchange import Refused, serve_connection
from quarterdeck.service.records.previews import count_previews, find_target, keep_port, kept_port
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.replicas import WorkspaceStatus

MOST_CONNECTIONS = 512

log = logging.getLogger(__name__)


class Doorway:
    """Listens from the first preview on, and again after a restart; on the same port if it can."""

    def __init__(self, context: ServiceContext) -> None:
        self._database = context.database
        self._home = context.home_id
        self._opening = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listens if there are previews; that it cannot is no reason not to start."""
        if await self._database.read(lambda c: count_previews(c, self._home)):
            try:
                await self.listen()
            except ApiError as e:
                log.error("Previews cannot be looked at: %s", e.message)

    async def close(self) -> None:
        """Stops listening and ends every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def listen(self) -> int:
        """Listens, and returns the port.

        Raises:
            ApiError: INTERNAL_ERROR when no socket can be opened.
        """
        async with self._opening:
            if self._server is None:
                opened = await self._open()
                self._server = await asyncio.start_server(self._serve, sock=opened)
                self._port = opened.getsockname()[1]
            return self._port

    async def _open(self) -> socket.socket:
        kept = await self._database.read(lambda c: kept_port(c, self._home))
        if kept is not None:
            try:
                return bind(TcpListener(HOST, kept)).socket
            except ListenError as e:
                log.warning("The addresses of previews change: %s", e)
        try:
            opened = bind(TcpListener(HOST, 0)).socket
        except ListenError as e:
            raise ApiError(ErrorCode.INTERNAL_ERROR, f"Previews cannot be served. {e}") from e
        if kept is None:
            port = opened.getsockname()[1]
            await self._database.write(lambda c: keep_port(c, self._home, port))
        return opened

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(task)
        try:
            await serve_connection(reader, writer, self._resolve)
        except asyncio.CancelledError:
            return  # the service stops; nobody awaits this task but `close`
        finally:
            self._connections.discard(task)

    async def _resolve(self, token: str) -> int:
        """The port of a token, while its workspace is active: then nobody else's program is there."""
        try:
            target = await self._database.read(lambda c: find_target(c, self._home, token))
        except StorageError as e:
            raise Refused(500, "The service's database cannot be read.") from e
        if target is None:
            raise Refused(404, "There is no preview at this address.")
        if target.status != WorkspaceStatus.ACTIVE:
            raise Refused(503, f"The replica of this preview is {target.status}.")
        return target.port
