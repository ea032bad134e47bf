"""The engine's end of one link: reads calls, runs each in a task, sends answers and streams.

Calls of one link are started in the order they came and enter the queue they need (a chat's, a
terminal's input order) before they first wait, so that order is kept where it matters and nothing
else waits for a slow call.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing

from pydantic_core import to_json

from quarterdeck.engine.errors import EngineProtocolError, EngineRefusedError, WrongSecretError
from quarterdeck.engine.framing import (
    PARSE_ERROR,
    LineReader,
    Message,
    decode,
    fault_line,
    notification_line,
    result_line,
)
from quarterdeck.engine.journal import Line
from quarterdeck.engine.methods import Method, Methods, parse
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.wire.engine import (
    LINE_LIMIT,
    OpenLink,
    StreamTerminal,
    TerminalFrame,
)
from quarterdeck.wire.errors import ErrorCode

logger = logging.getLogger(__name__)

OPEN_SECONDS = 10.0
STRANGER_LINE_LIMIT = 1 << 16
CALLS_AT_ONCE = 256
_BUFFER_BYTES = 1 << 16


class EngineConnection:
    """One accepted link. `run` returns when it has ended."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: str,
        methods: Methods,
        lasting: TaskOwner,
    ) -> None:
        self._lines = LineReader(reader, STRANGER_LINE_LIMIT)
        self._writer = writer
        self._secret = secret
        self._methods = methods
        self._lasting = lasting
        self._own = TaskOwner()
        self._sending = asyncio.Lock()
        self._places = asyncio.Semaphore(CALLS_AT_ONCE)
        self._streaming = False
        self._journal: asyncio.Task[None] | None = None
        writer.transport.set_write_buffer_limits(high=_BUFFER_BYTES)

    async def run(self) -> None:
        """Serve the link until either side ends it."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                opened = await self._open()
            if opened:
                await self._serve()
        except TimeoutError:
            logger.info("a link was not opened in time")
        except EngineProtocolError as error:
            await self._complain(error)
        except OSError:
            return  # the other side has disconnected
        finally:
            await self._own.close()
            self._writer.close()

    async def flush(self, seconds: float) -> None:
        """Send the last entries of the ended journal, then end the link."""
        if self._journal is not None:
            await asyncio.wait({self._journal}, timeout=seconds)
        self._writer.close()

    # Calls

    async def _open(self) -> bool:
        line = await self._lines.line()
        if line is None:
            return False
        message = decode(line)
        try:
            request = self._opening(message)
            hello = self._methods.hello()
        except EngineRefusedError as error:
            await self._send(fault_line(message.id, error))
            return False
        await self._send(result_line(message.id, hello))
        self._lines.limit = LINE_LIMIT
        if request.after is not None:
            entries = self._methods.journal(request.after)
            self._journal = self._own.start(
                self._until_disconnected(self._send_journal(entries)), "journal to a link"
            )
        return True

    def _opening(self, message: Message) -> OpenLink:
        if message.method != "open":
            raise WrongSecretError("The first call on a link is `open`.")
        request = parse(OpenLink, message.params)
        if not hmac.compare_digest(request.secret.encode(), self._secret.encode()):
            raise WrongSecretError()
        return request

    async def _serve(self) -> None:
        while (line := await self._lines.line()) is not None:
            message = decode(line)
            if message.method is None or message.id is None:
                continue  # an answer or a notification: the engine makes no calls
            await self._places.acquire()
            method = self._methods.table.get(message.method)
            owner = self._lasting if method is not None and method.lasting else self._own
            owner.start(self._answer(message, method), f"call {message.method}")

    async def _answer(self, message: Message, method: Method | None) -> None:
        try:
            await self._send(await self._carry_out(message, method))
        except OSError:
            return  # nobody is left to read the answer
        finally:
            self._places.release()

    async def _carry_out(self, message: Message, method: Method | None) -> bytes:
        try:
            if message.method == "terminal.stream":
                self._stream(parse(StreamTerminal, message.params))
                return result_line(message.id, None)
            if method is None:
                raise EngineRefusedError.not_found(f"The engine has no method {message.method!r}.")
            return result_line(message.id, await method.call(message.params))
        except EngineRefusedError as error:
            return fault_line(message.id, error)
        except Exception:
            logger.exception("the call %s failed", message.method)
            fault = EngineRefusedError(ErrorCode.INTERNAL_ERROR, "The engine failed at this call.")
            return fault_line(message.id, fault)

    async def _complain(self, error: EngineProtocolError) -> None:
        fault = EngineRefusedError.invalid(error.message)
        try:
            await self._send(fault_line(None, fault, PARSE_ERROR))
        except OSError:
            return  # it has disconnected already

    # Streams

    def _stream(self, request: StreamTerminal) -> None:
        if self._streaming:
            raise EngineRefusedError.conflict("This link already carries a terminal.")
        frames = self._methods.watch(request)
        self._streaming = True
        self._own.start(self._until_disconnected(self._send_frames(frames)), "terminal to a link")

    async def _send_frames(self, frames: AsyncGenerator[TerminalFrame, None]) -> None:
        async with aclosing(frames):
            async for frame in frames:
                await self._send(notification_line("terminal", to_json(frame, by_alias=True)))

    async def _send_journal(self, groups: AsyncGenerator[list[Line], None]) -> None:
        async with aclosing(groups):
            async for group in groups:
                await self._send(b"".join(notification_line("journal", line) for _, line in group))

    async def _until_disconnected(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except OSError:
            return  # the link broke; its reading side ends it

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            self._writer.write(data)
            await self._writer.drain()
