"""A caller that costs nearly nothing, so that what is measured is the service.

A client library spends more on a call than the service does, on the same cores, and serves its
connections in an order of its own.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path


async def post_all(socket: Path, path: str, bodies: list[bytes], connections: int) -> list[float]:
    """Posts every body, over so many connections at once; seconds of each answer, all 202."""
    waiting = iter(bodies)
    each = await asyncio.gather(*(_connection(socket, path, waiting) for _ in range(connections)))
    return [taken for one in each for taken in one]


async def _connection(socket: Path, path: str, bodies: Iterator[bytes]) -> list[float]:
    reader, writer = await asyncio.open_unix_connection(socket)
    taken: list[float] = []
    try:
        for body in bodies:
            begun = time.perf_counter()
            writer.write(_request(path, body))
            await _accepted(reader)
            taken.append(time.perf_counter() - begun)
    finally:
        writer.close()
        await writer.wait_closed()
    return taken


def _request(path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _accepted(reader: asyncio.StreamReader) -> None:
    first, *fields = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    length = next(line for line in fields if line.lower().startswith(b"content-length:"))
    body = await reader.readexactly(int(length.partition(b":")[2]))
    assert b" 202 " in first, (first, body)
