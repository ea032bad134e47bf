"""Terminals of a replica, and their input.

Keys reach a terminal in order, and once.

One request is in flight at a time; keys typed meanwhile are sent together in the next. Every request
has a generation and a sequence: a repeat after a broken connection has the same numbers, so the
terminal drops it. When nothing is in flight a new generation starts, numbered by the clock: when two
people type in one terminal, neither's keys are dropped for an older number.
"""

# `list` in annotations is the type, also in classes with a method `list`.
from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Self
from uuid import UUID

from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from quarterdeck.client.connection import AsyncResource, HttpConnection, bounded_json
from quarterdeck.client.error_mapping import STREAM_PACE, Backoff
from quarterdeck.client.errors import (
    ClientError,
    ConflictError,
    LinkError,
    NotActiveError,
    ProtocolError,
    UnavailableError,
)
from quarterdeck.client.stream_events import TerminalItem, TerminalReceived
from quarterdeck.client.streams import ResumingStream, is_place, left_out
from quarterdeck.wire.base import Success
from quarterdeck.wire.terminals import (
    MAX_INPUT_CHARACTERS,
    CreateTerminal,
    ResizeTerminal,
    TerminalAnswer,
    TerminalEvent,
    TerminalExit,
    TerminalInput,
    TerminalList,
    TerminalOutput,
    TerminalReplay,
    TerminalSession,
    terminal_bytes,
    terminal_event,
)

TYPING_PACE = Backoff(first=0.1, longest=2.0)
MOST_GENERATIONS = 3
"""Tries of the same keys in new generations before the refusal is raised."""

UNREADABLE = "A message of the terminal could not be read."

TerminalStream = ResumingStream[TerminalItem]


class TerminalCursor:
    """Drops output that was already yielded, cuts output yielded in part, and never leaves a gap."""

    def __init__(self, offset: int | None = None) -> None:
        self._offset = offset
        self._finished = False

    @property
    def place(self) -> str | None:
        return None if self._offset is None else str(self._offset)

    @property
    def finished(self) -> bool:
        return self._finished

    def connected(self) -> None:
        pass

    def take(self, message: ServerSentEvent) -> Iterable[TerminalItem]:
        if not message.data:
            return ()
        data = message.data.encode(errors="replace")
        try:
            event = terminal_event.validate_json(bounded_json(data, "A message of the terminal"))
        except (ValidationError, ProtocolError) as error:
            return (left_out(error, UNREADABLE, message),)
        end = int(message.id) if message.id.isdecimal() and is_place(message.id) else None
        try:
            return self._placed(event, end)
        except ValidationError as error:  # its data is not base64
            return (left_out(error, UNREADABLE, message),)

    def _placed(self, event: TerminalEvent, end: int | None) -> Iterable[TerminalItem]:
        match event:
            case TerminalReplay(offset=offset):
                data = terminal_bytes(event.data)
                self._offset = offset
                return (TerminalReceived(offset, event, data),)
            case TerminalOutput():
                return self._output(event, terminal_bytes(event.data), end)
            case TerminalExit():
                self._finished = True
            case _:
                pass
        return (TerminalReceived(end, event),)

    def _output(
        self, event: TerminalOutput, data: bytes, end: int | None
    ) -> Iterable[TerminalItem]:
        last, size = self._offset, len(data)
        if last is None:
            self._offset = end
            return (TerminalReceived(end, event, data),)
        if end is None:
            end = last + size  # a server without `id:` lines: count here
        if end <= last:
            return ()
        if end - last > size:
            # Bytes are missing: only a replay repairs the screen.
            self._offset = None
            raise ProtocolError("Output of the terminal is missing.", next_step="Reading it again.")
        if end - last < size:
            data = data[last - end :]
            event = TerminalOutput(data=base64.b64encode(data).decode())
        self._offset = end
        return (TerminalReceived(end, event, data),)


SendKeys = Callable[[TerminalInput], Awaitable[None]]
FaultListener = Callable[[ClientError], None]


class Keyboard(AsyncResource):
    """Takes keys at once and sends them in the background, while its block is open.

    A broken connection only delays keys. A refusal (the terminal has ended, the replica sleeps) is passed
    to `on_fault` once, drops unsent keys, and is raised by every later `type` and `drain`.
    """

    def __init__(
        self, send: SendKeys, on_fault: FaultListener | None = None, pace: Backoff = TYPING_PACE
    ) -> None:
        self._send = send
        self._on_fault = on_fault
        self._pace = pace
        self._waiting: list[str] = []
        self._typed = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._hurry = asyncio.Event()
        self._generation = -1
        self._sequence = 0
        self._fault: ClientError | None = None
        self._sender: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._sender = asyncio.create_task(self._run(), name="terminal keyboard")
        return self

    async def aclose(self) -> None:
        """Stop sending; keys that were not sent are dropped. `drain` first to keep them."""
        sender, self._sender = self._sender, None
        if sender is None:
            return
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)

    @property
    def fault(self) -> ClientError | None:
        """Why nothing can be typed any more."""
        return self._fault

    @property
    def pending(self) -> int:
        """Number of characters that wait and are not in flight."""
        return sum(map(len, self._waiting))

    def type(self, text: str) -> None:
        """Accept keys (as the bytes a terminal sends, decoded). Never waits.

        Raises:
            ClientError: the fault, once there is one.
        """
        if self._fault is not None:
            raise self._fault
        if text:
            self._waiting.append(text)
            self._empty.clear()
            self._typed.set()

    async def drain(self) -> None:
        """Wait until the terminal has accepted everything typed.

        Raises:
            ClientError: the fault, once there is one.
        """
        await self._empty.wait()
        if self._fault is not None:
            raise self._fault

    def reconnect_now(self) -> None:
        """Skip the wait after a broken connection."""
        self._hurry.set()

    async def _run(self) -> None:
        try:
            while True:
                await self._typed.wait()
                self._new_generation()
                await self._send_waiting()
        except ClientError as e:
            self._fail(e)

    async def _send_waiting(self) -> None:
        while self._waiting:
            await self._deliver(self._next_chunk())
        self._typed.clear()
        self._empty.set()

    def _next_chunk(self) -> str:
        text = "".join(self._waiting)
        chunk, rest = text[:MAX_INPUT_CHARACTERS], text[MAX_INPUT_CHARACTERS:]
        self._waiting = [rest] if rest else []
        return chunk

    async def _deliver(self, chunk: str) -> None:
        generations = 1
        failures = 0
        while True:
            keys = TerminalInput(data=chunk, generation=self._generation, sequence=self._sequence)
            try:
                await self._send(keys)
            except (LinkError, UnavailableError):
                await self._pause(self._pace.delay(failures))
                failures += 1
            except NotActiveError:
                raise
            except ConflictError:
                if generations == MOST_GENERATIONS:
                    raise
                generations += 1
                self._new_generation()
            else:
                self._sequence += 1
                return

    def _new_generation(self) -> None:
        self._generation = max(time.time_ns() // 1000, self._generation + 1)
        self._sequence = 0

    async def _pause(self, seconds: float) -> None:
        self._hurry.clear()
        try:
            # Python 3.11's wait_for loses a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    def _fail(self, error: ClientError) -> None:
        self._fault = error
        self._waiting.clear()
        self._empty.set()
        if self._on_fault is not None:
            self._on_fault(error)


class TerminalsApi:
    """`/v1/replica/{id}/terminal/sessions`. Every call needs an active replica (`NotActiveError`)."""

    def __init__(self, connection: HttpConnection, pace: Backoff = STREAM_PACE) -> None:
        self._connection = connection
        self._pace = pace

    async def list(self, replica_id: UUID) -> list[TerminalSession]:
        """Return every session, ended ones too."""
        return (await self._connection.call("GET", _path(replica_id), TerminalList)).sessions

    async def create(self, replica_id: UUID, cols: int, rows: int) -> TerminalSession:
        """Open a shell of 2 to 500 by 1 to 200 cells. `RateLimitedError` from the ninth."""
        body = CreateTerminal(cols=cols, rows=rows)
        answer = await self._connection.call("POST", _path(replica_id), TerminalAnswer, body=body)
        return answer.session

    async def input(self, replica_id: UUID, session_id: UUID, keys: TerminalInput) -> None:
        """Type numbered keys; repeats with the same number are ignored.

        Raises:
            ConflictError: an earlier number is missing; start a new generation.
        """
        await self._connection.call(
            "POST", f"{_path(replica_id)}/{session_id}/input", Success, body=keys, repeatable=True
        )

    async def resize(self, replica_id: UUID, session_id: UUID, cols: int, rows: int) -> None:
        """Resize the terminal, with the same limits as `create`."""
        await self._connection.call(
            "POST",
            f"{_path(replica_id)}/{session_id}/resize",
            Success,
            body=ResizeTerminal(cols=cols, rows=rows),
            repeatable=True,
        )

    async def close(self, replica_id: UUID, session_id: UUID) -> None:
        """End the shell and everything it started."""
        await self._connection.call("DELETE", f"{_path(replica_id)}/{session_id}", Success)

    def stream(
        self, replica_id: UUID, session_id: UUID, offset: int | None = None
    ) -> TerminalStream:
        """Return the output from a byte offset on; without one the retained tail first.

        Yields `TerminalReceived`, `Malformed`, `ConnectionLost`, `ConnectionRestored`; ends after an `exit`.
        Refusals (401, 404, 409, ...) are raised.
        """
        path = f"{_path(replica_id)}/{session_id}/stream"
        return ResumingStream(self._connection, path, TerminalCursor(offset), self._pace)

    def keyboard(
        self, replica_id: UUID, session_id: UUID, on_fault: FaultListener | None = None
    ) -> Keyboard:
        """Return a keyboard for a session. Use as an async context manager."""

        async def send(keys: TerminalInput) -> None:
            await self.input(replica_id, session_id, keys)

        return Keyboard(send, on_fault)


def _path(replica_id: UUID) -> str:
    return f"/v1/replica/{replica_id}/terminal/sessions"
