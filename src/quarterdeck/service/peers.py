"""Tells requests apart by their sockets.

Those of the installation's owner come over a unix socket, from the same user. Those from inside
workspaces come over a socket of their own, and may be of that user, too."""

import asyncio
import os
import socket
import struct
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from quarterdeck.service.auth import INSIDE, OWNER

CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the other side, as the kernel knows them."""


class PeerProtocol(HttpToolsProtocol):
    """HTTP, with `state["owner"]` in the scope of every request of the owner."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve one connection."""
        super().connection_made(cast("Any", transport))
        if is_owner(transport.get_extra_info("socket")):
            self.app_state = {**self.app_state, OWNER: True}


class InsideProtocol(HttpToolsProtocol):
    """HTTP for callers inside workspaces, with `state["inside"]`; never the owner."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve one connection."""
        super().connection_made(cast("Any", transport))
        self.app_state = {**self.app_state, INSIDE: True}


def is_owner(connection: Any) -> bool:
    """Whether the other side of a socket is the user who runs this process, or root."""
    if connection is None or connection.family != socket.AF_UNIX:
        return False
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _, user, _ = CREDENTIALS.unpack(raw)
    return user in (os.geteuid(), 0)
