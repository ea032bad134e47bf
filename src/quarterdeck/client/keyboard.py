"""What is typed into a terminal reaches it in order, and once.

One request is in flight at a time; keys typed meanwhile go together in the next. Every request
carries a generation and a sequence: a repeat after a broken line has the same numbers, so the
terminal drops it. When nothing is in flight a new generation begins, numbered by the clock: of two
people typing in one terminal, each is heard, and neither shuts the other out by an older number.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from quarterdeck.client.errors import ClientError, Conflict, LinkError, NotActive, Unavailable
from quarterdeck.client.retry import Pace
from quarterdeck.wire.terminals import MAX_INPUT_CHARACTERS, TerminalInput

TYPING_PACE = Pace(first=0.1, longest=2.0)
MOST_GENERATIONS = 3
"""Tries of the same keys in new generations before the refusal is believed."""

SendKeys = Callable[[TerminalInput], Awaitable[None]]
FaultListener = Callable[[ClientError], None]


class Keyboard:
    """Takes keys at once and sends them in the background, while its block is open.

    A broken line only delays keys. A refusal (the terminal is gone, the replica sleeps) is told to
    `on_fault` once, drops what was not sent, and is raised by every later `type` and `drain`.
    """

    def __init__(
        self, send: SendKeys, on_fault: FaultListener | None = None, pace: Pace = TYPING_PACE
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stops sending; keys that were not sent are dropped. `drain` first to keep them."""
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
        """Characters that wait and are not in flight."""
        return sum(map(len, self._waiting))

    def type(self, text: str) -> None:
        """Takes keys (as the bytes a terminal sends, decoded). Never waits.

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
        """Waits until everything typed has been taken by the terminal.

        Raises:
            ClientError: the fault, once there is one.
        """
        await self._empty.wait()
        if self._fault is not None:
            raise self._fault

    def reconnect_now(self) -> None:
        """Ends the waiting after a broken line."""
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
            except (LinkError, Unavailable):
                await self._pause(self._pace.delay(failures))
                failures += 1
            except NotActive:
                raise
            except Conflict:
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
