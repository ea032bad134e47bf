"""Asks a service for its health, with nothing but a socket."""

import asyncio
from pathlib import Path

from quarterdeck.local.sockets import socket_address

REQUEST = b"GET /v1/health HTTP/1.1\r\nHost: quarterdeck\r\nConnection: close\r\n\r\n"
PATIENCE_SECONDS = 5.0


async def answers_health(address: Path | tuple[str, int]) -> bool:
    """Whether `GET /v1/health` is answered with 200 at a unix socket or TCP address."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await _connect(address)
            try:
                writer.write(REQUEST)
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
                await writer.wait_closed()
    except (OSError, TimeoutError):
        return False


async def _connect(
    address: Path | tuple[str, int],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, Path):
        with socket_address(address) as name:
            return await asyncio.open_unix_connection(name)
    return await asyncio.open_connection(*address)
