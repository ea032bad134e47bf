"""The model server: HTTP on loopback, in the test's own event loop."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.real_agents.model.dialect import Body, Dialect
from tests.real_agents.model.script import Step, next_steps

WAIT_SECONDS = 90.0
"""Seconds that a test waits for an agent to ask; some take long to start on a busy machine."""


LINGER = 1.0
"""Seconds for an agent to close a connection whose answer has ended."""


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Body


class Model:
    """Answers in every dialect it was given; `url` is its address without a path.

    `requests` holds everything that was asked, in order.
    """

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self._dialects = dialects
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._changed = asyncio.Condition()
        self._waiting: list[str] = []
        self._serving: set[asyncio.Task[None]] = set()
        self.requests: list[Asked] = []
        self.url = ""

    @classmethod
    @asynccontextmanager
    async def running(cls, *dialects: Dialect) -> AsyncIterator["Model"]:
        model = cls(dialects)
        server = await asyncio.start_server(model._serve, "127.0.0.1", 0, limit=64 << 20)
        model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield model
        finally:
            server.close()
            for task in model._serving:
                task.cancel()
            await asyncio.gather(*model._serving, return_exceptions=True)
            await server.wait_closed()

    def release(self, name: str) -> None:
        """Lets every answer go on that waits under a name, now or later."""
        self._gates[name].set()

    def forget(self) -> None:
        """Let names be used again: what has waited under them, and was let go."""
        self._waiting.clear()
        for name in [name for name, gate in self._gates.items() if gate.is_set()]:
            del self._gates[name]

    async def waits(self, name: str, times: int = 1) -> None:
        """Returns when so many answers have come to their `wait NAME`."""
        await self._until(lambda: self.has_waited(name, times))

    def has_waited(self, name: str, times: int = 1) -> bool:
        """Whether so many answers have come to their `wait NAME`."""
        return self._waiting.count(name) >= times

    async def asked(self, number: int) -> Asked:
        """The request of this number, from 0."""
        await self._until(lambda: len(self.requests) > number)
        return self.requests[number]

    async def _until(self, true: Any) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(true)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # One connection, one request

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            # An agent that ends, or gives up, closes the connection whenever it likes; then also its
            # end cannot be written.
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await self._answer(await _read(reader), writer)
                # Its end comes first: what it may still have sent would else reset the connection,
                # and take the answer along.
                writer.write_eof()
                async with asyncio.timeout(LINGER):
                    await reader.read()
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.requests.append(asked)
        await self._tell()
        path = asked.path.partition("?")[0]
        dialect = next((one for one in self._dialects if one.takes(path)), None)
        if dialect is None:
            return await _send_json(writer, 404, {"error": {"message": f"no {path} here"}})
        if (whole := dialect.answer(path, asked.body)) is not None:
            return await _send_json(writer, 200, whole)
        steps = next_steps(
            dialect.entries(asked.body), lambda step: dialect.is_call(asked.body, step)
        )
        failed = next((step.text.split() for step in steps if step.kind == "fail"), None)
        if failed is not None:
            told = dialect.failure(int(failed[0]))
            told["error"] |= {"type": failed[1]} if failed[1:] else {}
            return await _send_json(writer, int(failed[0]), told)
        await self._stream(writer, dialect, asked.body, steps)

    async def _stream(
        self, writer: asyncio.StreamWriter, dialect: Dialect, body: Body, steps: Sequence[Step]
    ) -> None:
        writer.write(_head(200, "text/event-stream", "Transfer-Encoding: chunked"))
        reply = dialect.reply(body)
        await _send(writer, reply.opening())
        for step in steps:
            match step.kind:
                case "slow":
                    await asyncio.sleep(float(step.text))
                case "wait":
                    self._waiting.append(step.text)
                    await self._tell()
                    await self._gates[step.text].wait()
                case "garbage":
                    writer.write(_chunk(b"event: \xff\xfe\ndata: {not json\n\nnonsense\n\n"))
                case "cut":
                    return  # without the last chunk
                case _:
                    await _send(writer, reply.step(step))
        await _send(writer, reply.closing())
        writer.write(_chunk(b""))
        await writer.drain()


async def _send(writer: asyncio.StreamWriter, pieces: Any) -> None:
    for piece in pieces:
        writer.write(_chunk(piece.encode()))
        await writer.drain()


async def _send_json(writer: asyncio.StreamWriter, status: int, body: Body) -> None:
    data = json.dumps(body).encode()
    writer.write(_head(status, "application/json", f"Content-Length: {len(data)}") + data)
    await writer.drain()


def _head(status: int, kind: str, size: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Told", f"Content-Type: {kind}", size, "Connection: close"]
    if status >= 400:
        lines.append("Retry-After-Ms: 1")  # agents that try again wait as long as they are told
    return "\r\n".join([*lines, "", ""]).encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    data = await _body(reader, headers)
    return Asked(method, path, headers, json.loads(data) if data else {})


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    data = bytearray()
    while size := int((await reader.readline()).partition(b";")[0], 16):
        data += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return bytes(data)
