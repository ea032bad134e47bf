"""Commands in containers of their own, on a Docker Engine or podman."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import uuid4

import aiohttp
from aiodocker import Docker, DockerError
from aiodocker.containers import DockerContainer
from aiodocker.stream import Stream

from quarterdeck.sandboxes.answers import REASON_CHARACTERS
from quarterdeck.sandboxes.docker_client import ANSWER_SECONDS
from quarterdeck.sandboxes.errors import ProcessError, SandboxError

_TAIL_BYTES = 64 << 10
_FED = 'head -c "$1" | { shift; exec "$@"; }'
"""Ends the input of a command after so many bytes: the API cannot close it on its own."""


class InputError(Exception):
    """What a command's input is read from failed, with `failure`; the container engine did not."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__(str(failure))
        self.failure = failure


async def run_command(
    client: Docker,
    create: Callable[[dict[str, Any], str], Awaitable[DockerContainer]],
    config: dict[str, Any],
    command: Sequence[str],
    data: bytes | AsyncIterator[bytes],
) -> AsyncGenerator[bytes]:
    """Run a command in a new container without a network; yield its output.

    Args:
        create: creates a container by its configuration and name.
        config: of the container, which is changed.
        data: the command's input. Parts are only for a command that knows its end by itself.

    Raises:
        ProcessError: its exit status was not 0.
        SandboxError: its container failed.
        InputError: `data` did.
    """
    if isinstance(data, bytes) and data:
        command = ("/bin/sh", "-c", _FED, "sh", str(len(data)), *command)
    config["HostConfig"]["NetworkMode"] = "none"
    config["Cmd"] = list(command)
    config |= {name: bool(data) for name in ("OpenStdin", "StdinOnce", "AttachStdin")}
    container = await create(config, f"qd-command-{uuid4().hex}")
    try:
        async with aclosing(_output(container, data)) as parts:
            async for part in parts:
                yield part
    finally:
        await remove_container(client, container.id)


async def remove_container(client: Docker, name: str) -> None:
    """End and remove a container, unless there is none."""
    with unless_gone():
        await client.containers.container(name).delete(force=True, timeout=ANSWER_SECONDS)


async def _output(
    container: DockerContainer, data: bytes | AsyncIterator[bytes]
) -> AsyncGenerator[bytes]:
    tail = bytearray()
    async with _attached(container, bool(data)) as stream:
        await container.start()
        feeding = asyncio.create_task(_feed(container, stream, data), name="a container's input")
        try:
            while (message := await stream.read_out()) is not None:
                if message.stream == 1:
                    yield message.data
                else:
                    tail += message.data
                    del tail[:-_TAIL_BYTES]
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
    if not feeding.cancelled() and (failure := feeding.exception()) is not None:
        raise InputError(failure)
    ended = await container.wait()
    if failed := ended.get("Error"):
        reason = str(failed["Message"])[:REASON_CHARACTERS]
        raise SandboxError("A command ended with its container.", reason)
    if ended["StatusCode"] != 0:
        raise ProcessError(bytes(tail))


@asynccontextmanager
async def _attached(container: DockerContainer, stdin: bool) -> AsyncGenerator[Stream]:
    """Connect to a container's streams."""
    stream = container.attach(stdin=stdin, stdout=True, stderr=True)
    try:
        async with stream:
            yield stream
    finally:
        # The library leaves a stream that it could not open, or whose connection is lost, to the garbage collector.
        if (response := stream._resp) is not None:  # pyright: ignore[reportPrivateUsage]
            response.close()
        stream._closed = True  # pyright: ignore[reportPrivateUsage]


async def _feed(
    container: DockerContainer, stream: Stream, data: bytes | AsyncIterator[bytes]
) -> None:
    try:
        if isinstance(data, bytes):
            if data:
                await stream.write_in(data)
        else:
            async for part in data:
                await stream.write_in(part)
    except ConnectionError:
        return  # the command has ended without reading all of it
    except Exception:  # of what `data` is read from: the command would wait for the rest
        with suppress(DockerError, aiohttp.ClientError, TimeoutError):
            await container.kill()
        raise


@contextmanager
def unless_gone() -> Generator[None]:
    """Ignore that something is not there, or is being removed already."""
    try:
        yield
    except DockerError as e:
        if e.status not in (304, 404, 409):
            raise
