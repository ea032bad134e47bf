"""Accept links on the engine's socket, run their calls, and send answers and streams."""

import asyncio
import hmac
import logging
import os
import socket
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
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
from quarterdeck.engine.tasks import TaskOwner
from quarterdeck.local.sockets import socket_address
from quarterdeck.wire.engine import (
    LINE_LIMIT,
    SOCKET_NAME,
    CommandOutput,
    EngineHello,
    OpenLink,
    StreamCommand,
    StreamTerminal,
    TerminalFrame,
)
from quarterdeck.wire.errors import ErrorCode

_Params = TypeVar("_Params", bound=BaseModel)
Handler = Callable[[dict[str, Any] | None], Awaitable[BaseModel | None]]


@dataclass(frozen=True)
class Method:
    """`lasting` methods run to their end even when the link breaks."""

    call: Handler
    lasting: bool = True


class Methods(Protocol):
    """The methods of a connection."""

    table: dict[str, Method]

    def hello(self) -> EngineHello:
        """Return the answer of `open`."""
        ...

    def journal(self, after: int) -> AsyncGenerator[list[Line], None]:
        """Yield the entries above an index, then live ones."""
        ...

    def watch(self, request: StreamTerminal) -> AsyncGenerator[TerminalFrame, None]:
        """Yield a terminal's frames."""
        ...

    def output(self, request: StreamCommand) -> AsyncGenerator[bytes, None]:
        """Run a command and yield its output."""
        ...


def parse(model: type[_Params], params: dict[str, Any] | None) -> _Params:
    """Read a call's parameters.

    Raises:
        EngineRefusedError: INVALID_REQUEST, `details` names the field.
    """
    try:
        return model.model_validate(params or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        details = f"{field}: {first['msg']}"
        raise EngineRefusedError.invalid("The call's parameters are not valid.", details) from error


logger = logging.getLogger(__name__)

OPEN_SECONDS = 10.0
STRANGER_LINE_LIMIT = 1 << 16
CALLS_AT_ONCE = 256
_BUFFER_BYTES = 1 << 16


class EngineConnection:
    """One accepted link: runs each call in a task. `run` returns when it has ended.

    Calls are started in the order they came and enter the queue they need (a chat's, a terminal's
    input order) before they first wait, so that order is kept where it matters and nothing else
    waits for a slow call.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: str,
        methods: Methods,
        lasting: TaskOwner,
        opened: Callable[["EngineConnection"], None],
    ) -> None:
        self.lease: int | None = None
        """Of the service that opened it."""
        self._ended = False
        self._opened = opened
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

    def end(self) -> None:
        """End the link at once, whether or not the other side reads; calls that run are finished."""
        self._ended = True
        self._writer.transport.abort()

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
            self.lease = request.lease
            self._opened(self)
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
        while (line := await self._lines.line()) is not None and not self._ended:
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
            if message.method == "command.stream":
                await self._send_output(parse(StreamCommand, message.params))
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

    async def _send_output(self, request: StreamCommand) -> None:
        async with aclosing(self._methods.output(request)) as parts:
            async for part in parts:
                output = CommandOutput(data=b64encode(part).decode())
                await self._send(notification_line("output", to_json(output)))

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


FLUSH_SECONDS = 3.0
_BACKLOG = 128


class RpcServer:
    """Listens until `close`. Every link is served by its own task."""

    def __init__(
        self,
        run_dir: Path,
        secret: str,
        methods: Methods,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._path = run_dir / SOCKET_NAME
        self._secret = secret
        self._methods = methods
        self._links = TaskOwner()
        self._calls = TaskOwner()
        self._connections: set[EngineConnection] = set()
        self._server: asyncio.Server | None = None
        self._now = now
        self._alone_since = now()
        self._lease = 0

    @property
    def alone_seconds(self) -> float:
        """How long ago the last link ended; 0 while there is one."""
        return 0.0 if self._connections else self._now() - self._alone_since

    async def start(self) -> None:
        """Bind the socket; it appears under its name only once it accepts links.

        Raises:
            OSError: the run directory cannot be used.
        """
        listener = _bind(self._path)
        self._server = await asyncio.start_unix_server(self._accept, sock=listener)

    async def close(self) -> None:
        """Accept no more links and calls, finish running ones, and end the links."""
        self._path.unlink(missing_ok=True)
        if self._server is not None:
            self._server.close()
        await self._calls.wait(FLUSH_SECONDS)
        await self._calls.close()
        flushing = [connection.flush(FLUSH_SECONDS) for connection in self._connections]
        await asyncio.gather(*flushing)
        await self._links.wait(FLUSH_SECONDS)
        await self._links.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = EngineConnection(
            reader, writer, self._secret, self._methods, self._calls, self._opened
        )
        self._links.start(self._serve(connection), "link")

    def _opened(self, connection: EngineConnection) -> None:
        """End the links of services that had the workspace before.

        Raises:
            EngineRefusedError: CONFLICT: this is the link of such a service.
        """
        lease = connection.lease or 0
        if lease < self._lease:
            raise EngineRefusedError.conflict("Another service has this workspace now.")
        self._lease = lease
        for other in self._connections:
            if other.lease is not None and other.lease < lease:
                other.end()

    async def _serve(self, connection: EngineConnection) -> None:
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            self._alone_since = self._now()


def _bind(path: Path) -> socket.socket:
    """Return a listening socket, mode 0600, made under another name and renamed into place."""
    making = path.with_name(f"{path.name}.{os.getpid()}")
    making.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)
        try:
            with socket_address(making) as address:
                listener.bind(address)
        finally:
            os.umask(mask)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        making.rename(path)
    except BaseException:
        listener.close()
        raise
    return listener
