"""Tells requests of the installation's owner: they come over a unix socket, from the same user."""

import asyncio
import os
import socket
import struct
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from quarterdeck.service.auth import OWNER

CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the other side, as the kernel knows them."""


class PeerProtocol(HttpToolsProtocol):
    """HTTP, with `state["owner"]` in the scope of every request of the owner."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve one connection."""
        super().connection_made(cast("Any", transport))
        if is_owner(transport.get_extra_info("socket")):
            self.app_state = {**self.app_state, OWNER: True}


def is_owner(connection: Any) -> bool:
    """Whether the other side of a socket is the user who runs this process, or root."""
    if connection is None or connection.family != socket.AF_UNIX:
        return False
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _, user, _ = CREDENTIALS.unpack(raw)
    return user in (os.geteuid(), 0)
