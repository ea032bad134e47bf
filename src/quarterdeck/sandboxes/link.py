"""The byte stream to an engine, over the unix socket in its run directory."""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from quarterdeck.local.sockets import refuse_descriptors
from quarterdeck.sandboxes.layout import open_socket

READ_LIMIT = 1 << 18
"""Bytes a stream buffers before it pauses the sender (at most twice this)."""

_BUSY_TRIES = 200
_BUSY_STEP = 0.01
_CREDENTIALS = struct.Struct("3i")


async def connect_socket(path: Path) -> socket.socket:
    """Connect to a unix socket, however long its path is; links are not followed.

    Raises:
        ConnectionError: no process listens there.
    """
    descriptor = open_socket(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    refuse_descriptors(connection.fileno())
    try:
        await _connect(connection, f"/proc/self/fd/{descriptor}")
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(descriptor)
    return connection


async def _connect(connection: socket.socket, address: str) -> None:
    for _ in range(_BUSY_TRIES):
        try:
            connection.connect(address)
        except BlockingIOError:  # its queue of callers is full
            await asyncio.sleep(_BUSY_STEP)
        except OSError as e:
            raise ConnectionRefusedError(e.errno, f"no engine listens: {e.strerror}") from e
        else:
            return
    raise ConnectionRefusedError("the engine takes no more connections")


class _Counted(asyncio.StreamReaderProtocol):
    def __init__(self, reader: asyncio.StreamReader, received: Callable[[int], None]) -> None:
        super().__init__(reader)
        self._received = received

    def data_received(self, data: bytes) -> None:
        self._received(len(data))
        super().data_received(data)


async def open_stream(
    path: Path, received: Callable[[int], None]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a byte stream to the process that listens at a socket.

    Args:
        received: called with the number of bytes that arrive.

    Raises:
        ConnectionError: none does.
    """
    connection = await connect_socket(path)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(READ_LIMIT)
    try:
        transport, protocol = await loop.create_unix_connection(
            lambda: _Counted(reader, received), sock=connection
        )
    except BaseException:
        connection.close()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def listener_of(path: Path) -> int | None:
    """Return the pid of the process that listens at a socket; None when there is none."""
    try:
        connection = await connect_socket(path)
    except ConnectionError:
        return None
    with connection:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(raw)[0]
    return pid or None
