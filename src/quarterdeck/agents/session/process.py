"""An agent's process and the protocol lines on its streams.

The reader of the Agent Client Protocol's SDK turns every line into a task, without back-pressure.
This one passes each message to `inbound` and waits for it before it reads the next, so the order is
the agent's, nothing is recorded after the answer that ends a turn, and a slow sink slows the agent
down.
"""

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeGuard, cast

from quarterdeck.agents.processes import Tree, new_mark
from quarterdeck.agents.session.recorder import Activity

_TAIL = 4096
_QUOTED_LINES = 5
MARK = "QUARTERDECK_AGENT"


class AgentProcess:
    """A running agent with the end of its standard error."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._tail = bytearray()
        self._listening = asyncio.create_task(self._listen(), name="agent stderr")
        self._following = asyncio.create_task(self._follow(), name="agent's end")
        self._ending = asyncio.Lock()

    @classmethod
    async def start(
        cls, command: Sequence[str], directory: str, environment: Mapping[str, str]
    ) -> "AgentProcess":
        """Start the agent; it and its descendants carry one mark, so `end` finds all of them.

        Raises:
            OSError: the program or the directory cannot be used.
        """
        return cls(await Tree.start(command, directory, environment, new_mark(MARK)))

    @property
    def pid(self) -> int:
        """Process id of the agent."""
        return self._tree.pid

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Protocol lines from the agent."""
        return self._tree.stdout

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Protocol lines to the agent."""
        return self._tree.stdin

    @property
    def running(self) -> bool:
        """Whether the agent itself has not ended yet."""
        return self._tree.exit_status is None

    async def exit_reason(self, name: str) -> str:
        """Return a sentence on how the agent ended, with its last lines on standard error."""
        ended = await self._tree.exited(within=1.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.shield(self._listening)
        ending = _describe_exit(self._tree.exit_status) if ended else "closed its output"
        last_lines = "\n".join(self._tail.decode(errors="replace").splitlines()[-_QUOTED_LINES:])
        return f"{name} {ending}." + (
            f" Its last lines: {last_lines}" if last_lines.strip() else ""
        )

    async def end_some(self, variable: str) -> None:
        """Kill descendants with this environment variable; the agent keeps running."""
        await self._tree.end_some(variable)

    async def end(self, grace: float) -> None:
        """End the agent and everything it started. Safe to call twice.

        Its input is closed first: a well-behaved agent then ends and cleans up.
        """
        async with self._ending:
            self._following.cancel()
            if grace > 0 and self.running:
                self.stdin.close()
                await self._tree.exited(within=grace)
            await self._tree.end(grace)
            self._listening.cancel()
            await asyncio.gather(self._listening, self._following, return_exceptions=True)

    async def _follow(self) -> None:
        """End the rest of the process tree when its first process ends.

        Some agents restart as their own child, which would keep the pipes open.
        """
        await self._tree.exited()
        await self._tree.end_rest()

    async def _listen(self) -> None:
        while chunk := await self._tree.stderr.read(_TAIL):
            self._tail += chunk
            del self._tail[:-_TAIL]


def _describe_exit(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was killed by signal {-status}"
    return f"ended with exit status {status}"


Message = dict[str, Any]

LINE_LIMIT = 50 << 20
MOST_SENDING = 1_000
"""Messages being sent; at this number, the agent is not read until it takes them."""
_YIELD_LINES = 64
_NOISE_LINES = 3
_NOISE_WIDTH = 200


class LineTooLongError(Exception):
    """The agent sent more than `LINE_LIMIT` bytes without an end of line."""


class LineTransport:
    """The SDK's `Transport` over byte streams.

    `inbound` receives every message first and returns the message for the SDK, or None. Lines that
    are not a JSON-RPC message are skipped; `noise` keeps the last few.
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
        self._sending = 0
        self.overflowed = False
        self.request_ids: dict[str, int] = {}
        """Id of the latest request of each method."""
        self.noise: deque[str] = deque(maxlen=_NOISE_LINES)

    async def send(self, message: Message) -> None:
        """Write one message; wait while the agent does not read."""
        if "id" in message and "method" in message:
            self.request_ids[message["method"]] = message["id"]
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._sending += 1
        try:
            await self._writer.drain()
        finally:
            self._sending -= 1

    async def receive(self) -> Message | None:
        """Return the next message for the SDK; None at the end of the stream.

        Raises:
            LineTooLongError: the start of the next message cannot be found.
        """
        while line := await self._line():
            await self._let_others_run()
            if self._sending >= MOST_SENDING:
                with contextlib.suppress(ConnectionError):  # its output may still be read
                    await self._writer.drain()
            message = decode(line)
            if message is None:
                self._keep_noise(line)
            elif (passed := await self._inbound(message)) is not None:
                return passed
        return None

    async def close(self) -> None:
        """Do nothing: the streams belong to the process."""

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

    async def _let_others_run(self) -> None:
        """Let other tasks run: reading buffered lines never waits."""
        self._lines += 1
        if self._lines % _YIELD_LINES == 0:
            await asyncio.sleep(0)

    def _keep_noise(self, line: bytes) -> None:
        if text := line[:_NOISE_WIDTH].decode(errors="replace").strip():
            self.noise.append(text)


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def decode(line: bytes) -> Message | None:
    """Return one JSON-RPC message, or None when the line is not one.

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
    has_id = isinstance(message.get("id"), int | str)
    return (named and "id" not in message) or has_id


def _storable(message: Message) -> Message:
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    return json.loads(text)


class LinkLostError(Exception):
    """The agent ended, or stopped speaking the protocol."""


class RefusedError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, message: str, code: object = None, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ProcessLink(ABC):
    """Reads an agent's lines; each is handled before the next is read."""

    def __init__(self, name: str, process: AgentProcess, activity: Activity) -> None:
        self._name = name
        self._process = process
        self._activity = activity
        self._transport = LineTransport(process.stdout, process.stdin, self._handle_inbound)
        self._closed = False
        self._lost = False
        self._reason: str | None = None
        self.fault: Exception | None = None
        """The exception of the engine's sink; after it, reading from the agent stops."""

    @property
    def process_id(self) -> int:
        """Process id of the agent."""
        return self._process.pid

    @property
    def usable(self) -> bool:
        """Whether requests can be sent."""
        return not self._closed and not self._lost and self._process.running

    async def exit_reason(self) -> str:
        """Return a sentence on why the connection was lost."""
        if self._reason:
            return self._reason
        if self._transport.overflowed:
            return f"{self._name} printed a line of more than {LINE_LIMIT >> 20} MB."
        noise = "\n".join(self._transport.noise)
        printed = f" It printed text that is not part of the protocol: {noise}" if noise else ""
        return await self._process.exit_reason(self._name) + printed

    async def give_up(self, reason: str) -> None:
        """End an agent that is unusable; waiting callers get the reason."""
        self._reason = reason
        await self.close(0)

    @abstractmethod
    async def close(self, grace: float) -> None:
        """End the agent and everything it started. Safe to call twice."""

    @abstractmethod
    async def _dispatch(self, message: Message) -> Message | None:
        """Handle a message; return it, possibly changed, for the transport's reader."""

    async def _handle_inbound(self, message: Message) -> Message | None:
        self._activity.touch()
        try:
            return await self._dispatch(message)
        except Exception as error:
            self.fault = error
            raise
