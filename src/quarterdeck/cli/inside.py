"""Runs verbs for agents: inside a workspace, with its engine's secret."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from quarterdeck.cli.errors import UsageFault
from quarterdeck.wire.inside import SECRET_VARIABLE, URL_VARIABLE, WORKSPACE_VARIABLE

if TYPE_CHECKING:
    from quarterdeck.client import Client

Result = TypeVar("Result")

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between tries while no service answers: one that starts again is worth waiting for."""
UNIX = "unix:"


def with_inside_client(work: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Opens a client of the service for this workspace, awaits the work, closes it.

    The work is begun again while nothing listens: then nothing of it was carried out.

    Raises:
        UsageFault: this is no workspace.
        ClientError: what the work raised last.
    """
    address, workspace, secret = _place()

    async def run() -> Result:
        from quarterdeck.client.errors import NotConnected

        for pause in PAUSES:
            try:
                return await _once(address, workspace, secret, work)
            except NotConnected:
                await asyncio.sleep(pause)
        return await _once(address, workspace, secret, work)

    return asyncio.run(run())


async def _once(
    address: str, workspace: UUID, secret: str, work: Callable[["Client"], Awaitable[Result]]
) -> Result:
    from quarterdeck.client import LOCAL_URL, Client, Connection

    socket = Path(address.removeprefix(UNIX)) if address.startswith(UNIX) else None
    url = LOCAL_URL if socket else address
    async with Client(Connection(url, secret, socket=socket, workspace=workspace)) as client:
        return await work(client)


def _place() -> tuple[str, UUID, str]:
    names = (URL_VARIABLE, WORKSPACE_VARIABLE, SECRET_VARIABLE)
    address, workspace, secret = (os.environ.get(name, "") for name in names)
    try:
        found = UUID(workspace)
    except ValueError:
        found = None
    if not address or not secret or found is None:
        raise UsageFault(
            "This verb is for programs inside a replica.",
            f"There {', '.join(names)} are set; use the replica's shell or agent.",
        )
    return address, found, secret
