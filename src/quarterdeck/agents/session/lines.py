"""Protocol lines over an agent's streams.

The reader of the Agent Client Protocol's SDK runs ahead: it turns every line into a task and holds
nothing back. This one hands each message to `inbound` and waits for it before it reads on, so the
order is the agent's, nothing is recorded after the answer that ends a turn, and a slow sink slows
the agent down.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeGuard, cast

Message = dict[str, Any]

LINE_LIMIT = 50 << 20
_BREATH = 64
_NOISE_LINES = 3
_NOISE_WIDTH = 200


class LineTooLongError(Exception):
    """The agent sent more than `LINE_LIMIT` bytes without an end of line."""


class LineTransport:
    """The SDK's `Transport` over byte streams.

    `inbound` sees every message first and returns what the SDK shall see of it, or None.
    Lines that are no JSON-RPC message are skipped; `noise` keeps the last few.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        inbound: Callable[[Message], Awaitable[Message | None]],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._inbound = inbound
        self._lines = 0
        self.overflowed = False
        self.asked: dict[str, int] = {}
        """Id of the latest request of each method."""
        self.noise: deque[str] = deque(maxlen=_NOISE_LINES)

    async def send(self, message: Message) -> None:
        """Writes one message; waits while the agent does not read."""
        if "id" in message and "method" in message:
            self.asked[message["method"]] = message["id"]
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> Message | None:
        """The next message for the SDK; None at the end of the stream.

        Raises:
            LineTooLongError: there is no telling where the next message begins.
        """
        while line := await self._line():
            await self._breathe()
            message = decode(line)
            if message is None:
                self._keep_noise(line)
            elif (passed := await self._inbound(message)) is not None:
                return passed
        return None

    async def close(self) -> None:
        """Nothing to do: the streams belong to the process."""

    async def _line(self) -> bytes:
        try:
            return await self._reader.readuntil()
        except asyncio.IncompleteReadError as end:
            return end.partial
        except asyncio.LimitOverrunError as overrun:
            return await self._long_line(overrun.consumed)

    async def _long_line(self, ready: int) -> bytes:
        parts = bytearray(await self._reader.readexactly(ready))
        while not parts.endswith(b"\n"):
            if len(parts) > LINE_LIMIT:
                self.overflowed = True
                raise LineTooLongError
            try:
                parts += await self._reader.readuntil()
            except asyncio.IncompleteReadError as end:
                return bytes(parts + end.partial)
            except asyncio.LimitOverrunError as overrun:
                parts += await self._reader.readexactly(overrun.consumed)
        return bytes(parts)

    async def _breathe(self) -> None:
        """Lets other tasks run: reading what is already there never gives way by itself."""
        self._lines += 1
        if self._lines % _BREATH == 0:
            await asyncio.sleep(0)

    def _keep_noise(self, line: bytes) -> None:
        if text := line[:_NOISE_WIDTH].decode(errors="replace").strip():
            self.noise.append(text)


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def decode(line: bytes) -> Message | None:
    """One JSON-RPC message, or None when the line is none.

    NaN and infinities become null, and lone surrogates question marks: neither could be stored.
    """
    try:
        value: object = _DECODER.decode(line.decode(errors="replace").strip())
    except (ValueError, RecursionError):
        return None
    if not _is_message(value):
        return None
    return _storable(value) if b"\\ud" in line.lower() else value


def _is_message(value: object) -> TypeGuard[Message]:
    if not isinstance(value, dict):
        return False
    message = cast("Message", value)
    named = isinstance(message.get("method"), str)
    answered = isinstance(message.get("id"), int | str)
    return (named and "id" not in message) or answered


def _storable(message: Message) -> Message:
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    return json.loads(text)
