"""The library's client of the API of Docker, with bounds of what it waits for and reads."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from struct import Struct
from typing import Any

import aiohttp
from aiodocker import Docker

from quarterdeck.sandboxes.answers import BoundedResponse

ANSWER_SECONDS = 1800.0
"""Longest silence of a container engine that has a request: it may have to remove millions of files."""
_CONNECT_SECONDS = 30.0
LOG_LINES = 20
_LOG_BYTES = 4 << 20
"""Most bytes that are read of a log's last lines: an engine keeps 2 MiB in all."""
_LOG_CHARACTERS = 64 << 10
_UNIX = "unix://"
_HEADER = Struct(">4xL")


class DockerClient(Docker):
    """A client whose answers are bounded in bytes and in silence. `close` at the end.

    Args:
        url: `unix://` and a path, or `https://`.
        tls: for `https://`.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        if url.startswith(_UNIX):
            connector = aiohttp.UnixConnector(url.removeprefix(_UNIX))
            url = f"{_UNIX}localhost"
        else:
            connector = aiohttp.TCPConnector(ssl=tls or True)
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=ANSWER_SECONDS)
        # A small compressed answer could unpack to any size.
        session = aiohttp.ClientSession(
            connector=connector,
            headers={"Accept-Encoding": "identity"},
            response_class=BoundedResponse,
            auto_decompress=False,
        )
        super().__init__(url, connector, session, timeout)

    @asynccontextmanager
    async def _query(self, *args: Any, **options: Any) -> AsyncGenerator[aiohttp.ClientResponse]:
        # The library leaves a body that nobody reads to the garbage collector, with its connection.
        async with super()._query(*args, **options) as response:
            try:
                yield response
            finally:
                response.release()

    async def close(self) -> None:
        """Disconnect."""
        await super().close()
        await self.session.close()


async def read_log(client: Docker, path: str) -> str:
    """Return the last lines of the log of a container or a service.

    Args:
        path: of what has the log, within the API.
    """
    query = client._query  # pyright: ignore[reportPrivateUsage]  # the library's call reads all of it
    data = bytearray()
    async with query(
        f"{path}/logs", params={"stdout": True, "stderr": True, "tail": LOG_LINES}
    ) as response:
        async for part in response.content.iter_any():
            data += part
            if len(data) > _LOG_BYTES:
                break
    return _printed(data).decode(errors="replace")[-_LOG_CHARACTERS:].strip()


def _printed(data: bytes | bytearray) -> bytes:
    """Return what a container printed, which its engine sends in frames with a header each."""
    parts: list[bytes | bytearray] = []
    place = 0
    while len(data) - place > _HEADER.size:
        (length,) = _HEADER.unpack_from(data, place)
        place += _HEADER.size
        parts.append(data[place : place + length])
        place += length
    return b"".join(parts)
