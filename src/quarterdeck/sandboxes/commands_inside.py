"""Commands in a running container, over one of its connections home (`switchboard`)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from quarterdeck.sandboxes.errors import ProcessError, SandboxError
from quarterdeck.sandboxes.switchboard import Switchboard
from quarterdeck.wire.dial_home import COMMAND_PART, Command, CommandPart

TAKE_SECONDS = 10.0
"""How long a connection of a running container may be missing."""


async def run_inside(
    switchboard: Switchboard,
    workspace_id: str,
    command: Command,
    data: bytes | AsyncIterator[bytes],
) -> AsyncGenerator[bytes]:
    """Run a command in a workspace's container; yield its output.

    It ends with the generator.

    Raises:
        ProcessError: its exit status was not 0.
        SandboxError: the container is not connected, or the connection ended.
    """
    try:
        async with asyncio.timeout(TAKE_SECONDS):
            reader, writer = await switchboard.take(workspace_id, command=command)
    except TimeoutError as e:
        raise SandboxError("The replica's container is not connected now.") from e
    feeding = asyncio.create_task(_feed(writer, data), name="a command's input")
    try:
        while True:
            kind, length = COMMAND_PART.unpack(await reader.readexactly(COMMAND_PART.size))
            part = await reader.readexactly(length)
            if kind == CommandPart.ENDED:
                break
            yield part
    except (OSError, asyncio.IncompleteReadError) as e:
        if feeding.done() and (failure := feeding.exception()) is not None:
            raise failure from e
        raise SandboxError("The connection of the replica's container ended.") from e
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        writer.close()
    if part:
        raise ProcessError(part)


async def _feed(writer: asyncio.StreamWriter, data: bytes | AsyncIterator[bytes]) -> None:
    try:
        if isinstance(data, bytes):
            writer.write(data)
            await writer.drain()
        else:
            async for part in data:
                writer.write(part)
                await writer.drain()
    except ConnectionError:
        return  # the command has ended without reading all of it
    except Exception:  # of what `data` is read from: the command would wait for the rest
        writer.close()
        raise
