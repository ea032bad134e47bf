"""The client of an engine, used by the service: typed calls and two streams over one connection.

    link = await EngineLink.open(reader, writer, secret, after=last_index_seen)
    async for entry in link.journal(): ...        # when `after` was given
    await link.chat_send(message)                 # any number of calls at once

A link that carries the journal must be read continuously: its entries and the answers of calls
share one stream, and an unread journal blocks the answers (at most `JOURNAL_BUFFER` entries wait in
memory). So read the journal in a separate task, or make calls on a second link. The stream of a
terminal (`terminal_stream`) or a command (`command_output`) needs its own link, which gives the
engine natural back-pressure.
"""

import asyncio
import logging
import re
from base64 import b64decode
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from time import monotonic
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from quarterdeck.engine.errors import (
    EngineError,
    EngineGoneError,
    EngineProtocolError,
    EngineRefusedError,
)
from quarterdeck.engine.framing import LineReader, Message, call_line, decode, refusal_of
from quarterdeck.wire.base import Id, utc_now
from quarterdeck.wire.chats import EventChat
from quarterdeck.wire.engine import (
    LARGEST_INDEX,
    LINE_LIMIT,
    Answer,
    AskPerson,
    CancelQueued,
    CanvasCall,
    CanvasWritten,
    ChangeGoal,
    ChangeSettings,
    ChatCall,
    ChatRenamed,
    CommandOutput,
    DeleteEngineChat,
    Delivered,
    DeliverMessage,
    EngineHello,
    EngineReport,
    GiveNotice,
    GoalChanged,
    HeldQueues,
    IndexedFiles,
    JoinQueued,
    Journaled,
    JournalEntry,
    OpenChat,
    OpenLink,
    OrderQueue,
    PersonAsked,
    QueueChanged,
    ReadFile,
    RenameEngineChat,
    ShutDown,
    Steered,
    SteerQueued,
    StreamCommand,
    StreamTerminal,
    TerminalCall,
    TerminalFrame,
    TurnInterrupted,
    WriteCanvas,
)
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.files import CanvasFile, CanvasList, FileContent
from quarterdeck.wire.git_state import ReposChanged, RepositoryDiffs
from quarterdeck.wire.json_size import values_of
from quarterdeck.wire.permissions import Permissions
from quarterdeck.wire.setup import ClaimWorkspace
from quarterdeck.wire.terminals import (
    CreateTerminal,
    ExecRequest,
    ExecResponse,
    ResizeTerminal,
    TerminalAnswer,
    TerminalInput,
    TerminalList,
)

__all__ = [
    "EngineError",
    "EngineGoneError",
    "EngineLink",
    "EngineProtocolError",
    "EngineRefusedError",
]

JOURNAL_BUFFER = 1024
JOURNAL_BYTES = 8 << 20
"""Most bytes of entries that wait in memory, but always one entry."""
STREAM_BUFFER = 4
"""Frames buffered before the engine has to wait; few, so a slow reader delays only itself."""

LINES_PER_SECOND, LINES_BURST = 5_000, 50_000
BYTES_PER_SECOND, BYTES_BURST = 16 << 20, 128 << 20
VALUES_PER_SECOND, VALUES_BURST = 100_000, 1_000_000
"""What is read of one link on average, and at once. More waits in the engine.

Values of JSON: reading a million takes the service's loop more than a second, and may be 2 MB."""

UNREADABLE = (
    "An entry of the replica's journal could not be read and was left out. Everything else goes on."
)
_JOURNAL_HEAD = re.compile(
    rb'\{"jsonrpc": ?"2.0", ?"method": ?"journal", ?"params": ?\{"index": ?([0-9]{1,16}),'
)

logger = logging.getLogger(__name__)

_Model = TypeVar("_Model", bound=BaseModel)
_Params = BaseModel | dict[str, Any] | None


def unreadable(index: int) -> JournalEntry:
    """Return the entry that is stored in place of one that cannot be read."""
    payload = {"code": ErrorCode.INTERNAL_ERROR.value, "message": UNREADABLE}
    return JournalEntry(index=index, ts=utc_now(), type=EventType.ERROR, payload=payload)


class _Rate:
    """Lets an average of `per_second` pass, and `burst` at once."""

    def __init__(
        self, per_second: float, burst: float, now: Callable[[], float] = monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._now = now
        self._left = burst
        self._at = now()

    def delay(self, amount: float) -> float:
        """Count an amount; return the seconds to wait before the next one."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second) - amount
        self._at = now
        return max(0.0, -self._left / self._per_second)


class _Stream(Generic[_Model]):
    """Received items that are not read yet: at most `room` and `size`, then `put` waits."""

    def __init__(self, room: int, size: int = LINE_LIMIT) -> None:
        self._items: deque[tuple[_Model, int]] = deque()
        self._room = room
        self._most = size
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()

    async def put(self, item: _Model, size: int = 0) -> None:
        while self._items and (len(self._items) >= self._room or self._size + size > self._most):
            await self._change()
        self._items.append((item, size))
        self._size += size
        self._changed.set()

    async def take(self, most: int) -> list[_Model]:
        """Return up to `most` items once there is one; empty when the stream has ended."""
        taken: list[_Model] = []
        if (first := await self.get()) is not None:
            taken.append(first)
        while taken and self._items and len(taken) < most:
            taken.append(self._pop())
        return taken

    async def get(self) -> _Model | None:
        """Return the next item, or None when the stream has ended and everything was read."""
        while not self._items and not self._ended:
            await self._change()
        return self._pop() if self._items else None

    def _pop(self) -> _Model:
        item, size = self._items.popleft()
        self._size -= size
        self._changed.set()
        return item

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class EngineLink:
    """One open connection to an engine. Created with `open`, ended with `close`.

    Every call raises `EngineRefusedError` when the engine refuses it and `EngineGoneError` when the
    link is lost before the answer. A call whose caller is cancelled may still be carried out.
    """

    hello: EngineHello
    """The engine's answer when the link was opened."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines = LineReader(reader)
        self._writer = writer
        self._sending = asyncio.Lock()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._calls = 0
        self._entries: _Stream[JournalEntry] = _Stream(JOURNAL_BUFFER, JOURNAL_BYTES)
        self._newest = 0
        self._line_rate = _Rate(LINES_PER_SECOND, LINES_BURST)
        self._byte_rate = _Rate(BYTES_PER_SECOND, BYTES_BURST)
        self._value_rate = _Rate(VALUES_PER_SECOND, VALUES_BURST)
        self._frames: _Stream[TerminalFrame] = _Stream(STREAM_BUFFER)
        self._output: _Stream[CommandOutput] = _Stream(STREAM_BUFFER)
        self._ended = asyncio.Event()
        self._error: EngineError | None = None
        self._receiver = asyncio.create_task(self._receive(), name="engine link")

    @classmethod
    async def open(
        cls,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: str,
        after: int | None = None,
        lease: int = 0,
    ) -> "EngineLink":
        """Open the link; with `after`, `journal` gives every entry with a higher index.

        Links that were opened with a lower `lease` end.

        The link owns the streams from here on, also when this raises.

        Raises:
            WrongSecretError: the engine has another secret.
            EngineRefusedError: CONFLICT after a link with a higher lease.
            EngineGoneError: the engine closed the stream.
        """
        link = cls(reader, writer)
        link._newest = after or 0
        request = OpenLink(secret=secret, after=after, lease=lease)
        try:
            link.hello = await link._call("open", request, EngineHello)
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def closed(self) -> bool:
        """Whether the link has ended, from either side."""
        return self._ended.is_set()

    async def wait_closed(self) -> None:
        """Return when the link has ended."""
        await self._ended.wait()

    async def close(self, error: EngineError | None = None) -> None:
        """End the link; waiting calls raise the error, or `EngineGoneError`. Safe to call twice."""
        if error is not None:
            self._finish(error)
        self._receiver.cancel()
        await asyncio.gather(self._receiver, return_exceptions=True)
        self._finish(self._error)
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return  # the other side was faster

    # Streams

    async def journal(self) -> AsyncIterator[JournalEntry]:
        """Yield the entries after the `after` of `open`, in order, then live ones, for ever.

        Raises:
            EngineGoneError: the link ended; everything received before that was yielded first.
        """
        async for entry in self._drain(self._entries):
            yield entry

    async def journal_batch(self, most: int) -> list[JournalEntry]:
        """Return up to `most` entries that have arrived, once there is one.

        Empty when the link has ended and everything was returned.

        Raises:
            EngineProtocolError: it ended because the engine sent something else.
        """
        entries = await self._entries.take(most)
        if not entries and isinstance(self._error, EngineProtocolError):
            raise self._error
        return entries

    async def terminal_frames(self) -> AsyncIterator[TerminalFrame]:
        """Yield the frames of the terminal named with `terminal_stream`; ends after `exit` or `error`.

        Raises:
            EngineGoneError: the link ended before the terminal did.
        """
        async for frame in self._drain(self._frames):
            yield frame
            if frame.event.type in ("exit", "error"):
                return

    async def command_output(self, request: StreamCommand) -> AsyncGenerator[bytes]:
        """Run a command in the sandbox; yield its output. A link carries one, and closing it ends it.

        Raises:
            EngineRefusedError: CONFLICT: it failed, and `details` has the end of its standard error.
            EngineGoneError: the link ended before the command did.
        """
        call = asyncio.create_task(self._send("command.stream", request), name="command")
        call.add_done_callback(lambda _: self._output.end())
        try:
            while (part := await self._output.get()) is not None:
                yield b64decode(part.data)
            await call
        except ValueError as error:
            raise EngineProtocolError("The engine sent output that is not base64.") from error
        finally:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    # Calls

    async def status(self) -> EngineReport:
        """Return counts of the engine, and whether its journal can be written."""
        return await self._call("status", None, EngineReport)

    async def shutdown(self, by_request: bool = False) -> None:
        """Ask the engine to end; the journal's last entries follow, then the link closes."""
        await self._send("shutdown", ShutDown(by_request=by_request))

    async def exec(self, request: ExecRequest) -> ExecResponse:
        """Run a shell command. Closing the link stops it."""
        return await self._call("exec", request, ExecResponse)

    async def terminal_list(self) -> TerminalList:
        """Return terminal sessions, oldest first, ended ones that were not closed included."""
        return await self._call("terminal.list", None, TerminalList)

    async def terminal_create(self, request: CreateTerminal) -> TerminalAnswer:
        """Open a terminal. Refused with `TERMINAL_LIMIT_REACHED` when eight are running."""
        return await self._call("terminal.create", request, TerminalAnswer)

    async def terminal_input(self, session_id: Id, request: TerminalInput) -> None:
        """Type into a terminal. Refused with `CONFLICT` when a gap is not filled within 5 s."""
        await self._send("terminal.input", _named(session_id, request))

    async def terminal_resize(self, session_id: Id, request: ResizeTerminal) -> None:
        """Change a terminal's size."""
        await self._send("terminal.resize", _named(session_id, request))

    async def terminal_close(self, session_id: Id) -> None:
        """End everything in a terminal and forget it."""
        await self._send("terminal.close", TerminalCall(session_id=session_id))

    async def terminal_stream(self, session_id: Id, offset: int | None = None) -> None:
        """Ask for a terminal's output on this link; read it with `terminal_frames`."""
        await self._send("terminal.stream", StreamTerminal(session_id=session_id, offset=offset))

    async def claim(self, request: ClaimWorkspace) -> None:
        """Give a held workspace to its owner. Refused with `CONFLICT` while it is not prepared."""
        await self._send("workspace.claim", request)

    async def permissions_set(self, permissions: Permissions) -> None:
        """Apply a permission policy from now on, also to open questions."""
        await self._send("permissions.set", permissions)

    async def chat_open(self, request: OpenChat) -> EventChat:
        """Make a chat, or find it by its id."""
        return await self._call("chat.open", request, EventChat)

    async def chat_rename(self, request: RenameEngineChat) -> ChatRenamed:
        """Give a chat its title."""
        return await self._call("chat.rename", request, ChatRenamed)

    async def chat_send(self, message: DeliverMessage) -> Delivered:
        """Deliver a message; on return it is on disk. Sent twice, it runs once."""
        return await self._call("chat.send", message, Delivered)

    async def chat_interrupt(self, chat_id: Id) -> TurnInterrupted:
        """Stop the chat's running turn and wait for its end."""
        return await self._call("chat.interrupt", ChatCall(chat_id=chat_id), TurnInterrupted)

    async def chat_respond(self, answer: Answer) -> Journaled:
        """Answer an agent's question. Refused with `CONFLICT` when it is closed."""
        result = await self._send("chat.respond", answer)
        if result is None:
            return Journaled(index=0)
        return _read("chat.respond", result, Journaled)

    async def chat_ask(self, question: AskPerson) -> PersonAsked:
        """Ask a person in a chat and wait for the answer, however long it takes.

        Refused with `CONFLICT` when there is no chat.
        """
        return await self._call("chat.ask", question, PersonAsked)

    async def chat_notice(self, notice: GiveNotice) -> None:
        """Add a notice to the next prompt of a chat's agent. Repeating it has no effect."""
        await self._send("chat.notice", notice)

    async def chat_goal(self, change: ChangeGoal) -> GoalChanged:
        """Set, pause or resume a goal. Refused with `CONFLICT` when there is none."""
        return await self._call("chat.goal", change, GoalChanged)

    async def chat_settings(self, change: ChangeSettings) -> Journaled:
        """Change settings of a chat's agent. Refused when the agent does not offer a mode."""
        return await self._call("chat.settings", change, Journaled)

    async def chat_delete(self, request: DeleteEngineChat) -> Journaled:
        """Interrupt a chat's turn and delete the chat, if it still exists."""
        return await self._call("chat.delete", request, Journaled)

    async def queue_cancel(self, request: CancelQueued) -> QueueChanged:
        """Take messages out of a chat's queue, but for those that have started."""
        return await self._call("queue.cancel", request, QueueChanged)

    async def queue_order(self, request: OrderQueue) -> QueueChanged:
        """Put a chat's queue in order."""
        return await self._call("queue.order", request, QueueChanged)

    async def queue_steer(self, request: SteerQueued) -> Steered:
        """Put a message that waits into the running turn. Refused when none runs."""
        return await self._call("queue.steer", request, Steered)

    async def queue_join(self, request: JoinQueued) -> Journaled:
        """Replace messages that wait by one. Refused when one of them no longer waits."""
        return await self._call("queue.join", request, Journaled)

    async def queue_held(self) -> HeldQueues:
        """Return whether the engine waits for `queue_release`, and what is in its queues."""
        return await self._call("queue.held", None, HeldQueues)

    async def queue_release(self) -> None:
        """Let queues and goals continue."""
        await self._send("queue.release", None)

    async def repos_refresh(self) -> ReposChanged:
        """Read every repository now; changes are journaled as well."""
        return await self._call("repos.refresh", None, ReposChanged)

    async def repos_diffs(self) -> RepositoryDiffs:
        """Return the whole difference of every repository, up to a MiB each."""
        return await self._call("repos.diffs", None, RepositoryDiffs)

    async def canvas_list(self) -> CanvasList:
        """Return every file of the canvas."""
        return await self._call("canvas.list", None, CanvasList)

    async def canvas_get(self, filename: str) -> CanvasFile:
        """Return one file of the canvas. Refused with `NOT_FOUND`."""
        return await self._call("canvas.get", CanvasCall(filename=filename), CanvasFile)

    async def canvas_put(self, upload: WriteCanvas) -> CanvasWritten:
        """Write an upload; on return it is on disk. Sent twice, it is written once."""
        return await self._call("canvas.put", upload, CanvasWritten)

    async def files_index(self) -> IndexedFiles:
        """List the files of every repository now."""
        return await self._call("files.index", None, IndexedFiles)

    async def files_read(self, repo_name: str, path: str) -> FileContent:
        """Return a file's first MiB. Refused with `NOT_FOUND`, or `INVALID_REQUEST` outside of it."""
        return await self._call("files.read", ReadFile(repo_name=repo_name, path=path), FileContent)

    # Inside

    async def _call(self, method: str, params: _Params, model: type[_Model]) -> _Model:
        return _read(method, await self._send(method, params), model)

    async def _send(self, method: str, params: _Params) -> Any:
        if self.closed:
            raise self._error or EngineGoneError()
        self._calls += 1
        number = self._calls
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            async with self._sending:
                if self._writer.is_closing():  # uvloop raises RuntimeError for such a write
                    raise EngineGoneError()
                self._writer.write(call_line(number, method, params))
                await self._writer.drain()
            return await answer
        except OSError as error:
            raise EngineGoneError() from error
        finally:
            self._pending.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # the link may have ended before the call was written

    async def _receive(self) -> None:
        error: EngineError | None = None
        try:
            while (line := await self._lines.line()) is not None:
                await self._take(line)
                if delay := self._delay(line):
                    await asyncio.sleep(delay)
        except EngineProtocolError as broken:
            error = broken
        except OSError:
            error = EngineGoneError()
        finally:
            self._finish(error)
            self._writer.close()

    def _delay(self, line: bytes) -> float:
        """Count a line; return the seconds to wait before the next one."""
        return max(
            self._line_rate.delay(1),
            self._byte_rate.delay(len(line)),
            self._value_rate.delay(values_of(line)),
        )

    async def _take(self, line: bytes) -> None:
        try:
            message = decode(line)
            match message.method:
                case "journal":
                    await self._take_entry(JournalEntry.model_validate(message.params), line)
                case "terminal":
                    await self._frames.put(TerminalFrame.model_validate(message.params), len(line))
                case "output":
                    await self._output.put(CommandOutput.model_validate(message.params), len(line))
                case None:
                    self._resolve(message)
                case _:
                    pass  # a newer engine may send more
        except (ValidationError, EngineProtocolError) as error:
            # A disk may have damaged one line of a journal: its number says where to go on.
            head = _JOURNAL_HEAD.match(line)
            index = int(head[1]) if head else 0
            if not self._newest < index <= LARGEST_INDEX:
                raise EngineProtocolError("The engine sent a line of an unknown shape.") from error
            logger.error("Entry %d of an engine's journal cannot be read.", index)
            await self._take_entry(unreadable(index), line)

    async def _take_entry(self, entry: JournalEntry, line: bytes) -> None:
        if entry.index <= self._newest:
            raise EngineProtocolError("The engine's journal is not in order.")
        self._newest = entry.index
        await self._entries.put(entry, len(line))

    def _resolve(self, message: Message) -> None:
        waiting = self._pending.get(message.id) if isinstance(message.id, int) else None
        if waiting is None or waiting.done():
            return
        if message.error is not None:
            waiting.set_exception(refusal_of(message.error))
        else:
            waiting.set_result(message.result)

    def _finish(self, error: EngineError | None) -> None:
        if self._ended.is_set():
            return
        self._error = error or EngineGoneError()
        self._ended.set()
        self._entries.end()
        self._frames.end()
        self._output.end()
        for waiting in self._pending.values():
            if not waiting.done():
                waiting.set_exception(self._error)

    async def _drain(self, stream: "_Stream[_Model]") -> AsyncIterator[_Model]:
        while (item := await stream.get()) is not None:
            yield item
        raise self._error or EngineGoneError()


def _read(method: str, result: Any, model: type[_Model]) -> _Model:
    try:
        return model.model_validate(result)
    except ValidationError as error:
        raise EngineProtocolError(f"The engine's answer of {method} has no known shape.") from error


def _named(session_id: Id, request: BaseModel) -> dict[str, Any]:
    return {"sessionId": str(session_id), **request.model_dump(mode="json")}
