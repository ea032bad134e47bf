"""Connections from an engine in a container to its service (`wire.dial_home`)."""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.local.sockets import socket_address
from quarterdeck.local.tls import pinned_context
from quarterdeck.wire.dial_home import (
    BOOT_PATH,
    LINK_PATH,
    OPENED,
    PART_BYTES,
    SPARES,
    WORKSPACE_HEADER,
    BootConfig,
    Destination,
)

PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts to reach the service; the last one is repeated."""
BOOT_SECONDS = 60.0
"""How long the service may be away when the container starts."""
LOOPBACKS = ("127.0.0.1", "::1")

logger = logging.getLogger(__name__)


class NoBootError(Exception):
    """The service gives no configuration. The text says why."""


@dataclass(frozen=True)
class ServiceAddress:
    """The service as seen from the container, and the workspace that calls it.

    `ca` is the file of the certificate to check the service's against, instead of the machine's
    authorities.
    """

    url: str
    workspace_id: str
    ca: Path | None = None

    @cached_property
    def _tls(self) -> "ssl.SSLContext | None":
        if urlsplit(self.url).scheme != "https":
            return None
        from asyncio.sslproto import SSLProtocol

        # Each connection has a buffer of this size, and most of it is never used.
        SSLProtocol.max_size = PART_BYTES
        return pinned_context(self.ca) if self.ca else ssl.create_default_context()

    def websocket(self, path: str) -> str:
        """Return the address of a WebSocket."""
        parts = urlsplit(self.url)
        scheme = "wss" if parts.scheme == "https" else "ws"
        return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + path, "", ""))

    def headers(self, token: str) -> Mapping[str, str]:
        """Return the headers that show a token."""
        return {"Authorization": f"Bearer {token}", WORKSPACE_HEADER: self.workspace_id}

    def dial(self, path: str, token: str, most: int | None = PART_BYTES) -> connect:
        """Return a connection that is to be opened.

        Args:
            most: bytes of the largest message.
        """
        return connect(
            self.websocket(path),
            additional_headers=self.headers(token),
            compression=None,
            max_size=most,
            ssl=self._tls,
            proxy=None,
        )


async def fetch_boot(address: ServiceAddress, token: str) -> BootConfig:
    """Return the configuration of this start; the token cannot be used again.

    Raises:
        NoBootError: the service refuses it, or cannot be reached.
    """
    pauses = iter(PAUSES)
    try:
        async with asyncio.timeout(BOOT_SECONDS):
            while True:
                try:
                    async with address.dial(BOOT_PATH, token, None) as connection:
                        return BootConfig.model_validate_json(await connection.recv())
                except ssl.SSLError:
                    raise
                except (OSError, InvalidStatus) as error:
                    # Behind the address may be several services; one that has not started this
                    # container is unavailable for it.
                    if isinstance(error, InvalidStatus) and error.response.status_code != 503:
                        raise
                    logger.info("the service cannot be reached: %s", error)
                    await asyncio.sleep(next(pauses, PAUSES[-1]))
    except ssl.SSLCertVerificationError as error:
        raise NoBootError(
            f"the certificate of the service at {address.url} is not accepted: "
            f"{error.verify_message}"
        ) from error
    except ssl.SSLError as error:
        raise NoBootError(f"no TLS with the service at {address.url}: {error.reason}") from error
    except InvalidStatus as error:
        status = error.response.status_code
        raise NoBootError(f"the service refuses the token of this start ({status})") from error
    except TimeoutError as error:
        raise NoBootError(f"the service does not answer at {address.url}") from error
    except (WebSocketException, ValidationError) as error:
        raise NoBootError(f"the service's answer cannot be read: {error}") from error


class HomeDialer:
    """Keeps connections waiting at the service, and serves those that it takes."""

    def __init__(self, address: ServiceAddress, token: str, socket: Path) -> None:
        self._address = address
        self._token = token
        self._socket = socket
        self._own = TaskOwner()
        self._waiting = asyncio.Semaphore(SPARES)

    async def run(self) -> None:
        """Dial until cancelled; then every connection has ended."""
        try:
            while True:
                await self._waiting.acquire()
                self._own.start(self._spare(), "a connection home")
        finally:
            await self._own.close()

    async def _spare(self) -> None:
        """Dial until one connection was taken, and serve it to its end."""
        tries = 0
        taken = False
        try:
            while not taken:
                try:
                    async with self._address.dial(LINK_PATH, self._token) as connection:
                        tries = 0
                        destination = Destination.model_validate_json(await connection.recv())
                        taken = True
                        self._waiting.release()
                        await self._serve(connection, destination)
                except (OSError, WebSocketException) as error:
                    if not taken:
                        logger.info("the service is not reached: %s", error)
                        await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                        tries += 1
        finally:
            if not taken:
                self._waiting.release()

    async def _serve(self, connection: ClientConnection, destination: Destination) -> None:
        reader, writer = await self._open(destination)
        if destination.port is not None:
            await connection.send(OPENED)
        pipes = {
            asyncio.create_task(_to_service(reader, connection), name="bytes to the service"),
            asyncio.create_task(_to_program(connection, writer), name="bytes from the service"),
        }
        try:
            await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pipe in pipes:
                pipe.cancel()
            await asyncio.gather(*pipes, return_exceptions=True)
            writer.close()

    async def _open(
        self, destination: Destination
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if destination.port is None:
            with socket_address(self._socket) as address:
                return await asyncio.open_unix_connection(address)
        for host in LOOPBACKS:
            try:
                return await asyncio.open_connection(host, destination.port)
            except OSError:
                continue
        raise ConnectionRefusedError(f"nothing listens on port {destination.port}")


async def _to_service(reader: asyncio.StreamReader, connection: ClientConnection) -> None:
    try:
        while data := await reader.read(PART_BYTES):
            await connection.send(data)
    except (OSError, ConnectionClosed):
        return  # the other side has ended it


async def _to_program(connection: ClientConnection, writer: asyncio.StreamWriter) -> None:
    try:
        async for data in connection:
            writer.write(data if isinstance(data, bytes) else data.encode())
            await writer.drain()
    except (OSError, ConnectionClosed):
        return  # the other side has ended it
