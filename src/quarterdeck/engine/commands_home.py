"""Commands that a service runs in the container over a connection home, beside the engine."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE, Process

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from quarterdeck.local.processes import end_process
from quarterdeck.wire.dial_home import COMMAND_PART, PART_BYTES, Command, CommandPart

_TAIL_BYTES = PART_BYTES - COMMAND_PART.size


async def serve_command(connection: ClientConnection, command: Command) -> None:
    """Run a command to its end, or to that of the connection."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command.words,
            cwd=command.directory,
            env={**os.environ, **command.environment},
            stdin=DEVNULL if command.input_bytes == 0 else PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        await _send(connection, CommandPart.ENDED, str(error).encode())
        return
    running = asyncio.create_task(_report(connection, process), name="a command to its service")
    feeding = asyncio.create_task(_feed(connection, process, command.input_bytes), name="its input")
    ended = asyncio.create_task(connection.wait_closed())
    try:
        await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (running, feeding, ended):
            task.cancel()
        await asyncio.gather(running, feeding, ended, return_exceptions=True)
        await end_process(process)


async def _report(connection: ClientConnection, process: Process) -> None:
    assert process.stdout is not None and process.stderr is not None
    tail = asyncio.create_task(_tail(process.stderr), name="its standard error")
    try:
        while data := await process.stdout.read(PART_BYTES - COMMAND_PART.size):
            await _send(connection, CommandPart.OUTPUT, data)
        said, status = await tail, await process.wait()
    finally:
        tail.cancel()
    failure = said or f"exit status {status}".encode()
    await _send(connection, CommandPart.ENDED, failure if status else b"")


async def _tail(stream: asyncio.StreamReader) -> bytes:
    tail = bytearray()
    while data := await stream.read(PART_BYTES):
        tail += data
        del tail[:-_TAIL_BYTES]
    return bytes(tail)


async def _send(connection: ClientConnection, kind: CommandPart, data: bytes) -> None:
    await connection.send(COMMAND_PART.pack(kind, len(data)) + data)


async def _feed(connection: ClientConnection, process: Process, left: int | None) -> None:
    """Pass the input on, which is followed by nothing else."""
    if process.stdin is None:
        return
    try:
        while left is None or left > 0:
            data = await connection.recv(decode=False)
            process.stdin.write(data)
            await process.stdin.drain()
            left = None if left is None else left - len(data)
        process.stdin.close()
    except (OSError, ConnectionClosed):
        return  # the command, or the service, has had enough
