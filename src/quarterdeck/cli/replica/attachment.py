"""The two directions between this terminal and a session, until one of them ends."""

import asyncio
import codecs
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.cli.replica.raw_terminal import raw_terminal, without_questions, write_all
from quarterdeck.client.errors import ClientError
from quarterdeck.client.items import Lost, Restored, TerminalReceived
from quarterdeck.wire.terminals import TerminalEvent, TerminalExit, TerminalOutput, TerminalReplay

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.keyboard import Keyboard

DETACH_KEYS = (b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~")
"""Ctrl+] as terminals send it: plain, and in the two protocols for modified keys."""

CLEAR = b"\x1b[0m\x1b[H\x1b[2J"
READ_SIZE = 65_536


class Detached(Exception):
    """The person left; the session goes on."""


class Attachment:
    """One attached session. `size` tells the columns and rows of this terminal."""

    def __init__(
        self,
        client: "Client",
        replica_id: UUID,
        session_id: UUID,
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._client = client
        self._replica_id = replica_id
        self._session_id = session_id
        self._size = size
        self._untouched = True
        self._resized = asyncio.Event()
        self._resized.set()
        self._over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def run(self) -> int | None:
        """Runs until the shell ends.

        Returns:
            The shell's exit status.

        Raises:
            Detached: the detach key was pressed.
            ClientError: the session is gone, or the service refuses.
        """
        terminals = self._client.terminals
        keyboard = terminals.keyboard(self._replica_id, self._session_id, self._fail)
        with raw_terminal(), self._signals():
            async with keyboard:
                with self._reading(keyboard):
                    return await self._until_over(keyboard)

    async def _until_over(self, keyboard: "Keyboard") -> int | None:
        tasks = [asyncio.create_task(self._show()), asyncio.create_task(self._resize())]
        for task in tasks:
            task.add_done_callback(self._task_ended)
        try:
            return await self._over
        except Detached:
            await self._last_keys(keyboard)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _last_keys(self, keyboard: "Keyboard") -> None:
        """What was typed before the detach key still goes, when the line is up."""
        try:
            async with asyncio.timeout(1):
                await keyboard.drain()
        except (TimeoutError, ClientError):
            return

    async def _show(self) -> None:
        stream = self._client.terminals.stream(self._replica_id, self._session_id)
        async with stream:
            async for item in stream:
                match item:
                    case TerminalReceived(_, event, data):
                        await self._write(self._bytes_of(event, data))
                    case Lost():
                        await self._write(_title("qd: line lost, trying again"))
                    case Restored():
                        await self._write(_title("qd: attached"))
                    case _:
                        pass

    def _bytes_of(self, event: TerminalEvent, data: bytes) -> bytes:
        match event:
            case TerminalReplay():
                return self._cleared() + without_questions(data)
            case TerminalOutput():
                return data
            case TerminalExit(exit_code=status):
                self._end(status)
            case _:
                pass
        return b""

    def _cleared(self) -> bytes:
        """An empty screen; what the person had on it goes to the scrollback, the first time."""
        room, self._untouched = b"\n" * self._size()[1] if self._untouched else b"", False
        return room + CLEAR

    async def _write(self, data: bytes) -> None:
        # In a thread: a slow line holds the output back, never the keys.
        if data:
            await asyncio.to_thread(write_all, sys.stdout.fileno(), data)

    async def _resize(self) -> None:
        while True:
            await self._resized.wait()
            self._resized.clear()
            cols, rows = self._size()
            await self._client.terminals.resize(self._replica_id, self._session_id, cols, rows)

    @contextmanager
    def _reading(self, keyboard: "Keyboard") -> Generator[None]:
        loop = asyncio.get_running_loop()
        source = sys.stdin.fileno()
        loop.add_reader(source, self._typed, source, keyboard)
        try:
            yield
        finally:
            loop.remove_reader(source)

    def _typed(self, source: int, keyboard: "Keyboard") -> None:
        try:
            keys = os.read(source, READ_SIZE)
        except OSError:
            keys = b""
        before, detached = _until_detach(keys)
        if before and keyboard.fault is None:
            keyboard.type(self._decoder.decode(before))
        if detached or not keys:
            self._fail(Detached())

    @contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._resized.set)
        endings = (signal.SIGTERM, signal.SIGHUP)
        for ending in endings:
            loop.add_signal_handler(ending, self._fail, KeyboardInterrupt())
        try:
            yield
        finally:
            for handled in (signal.SIGWINCH, *endings):
                loop.remove_signal_handler(handled)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _end(self, status: int | None) -> None:
        if not self._over.done():
            self._over.set_result(status)


def _until_detach(keys: bytes) -> tuple[bytes, bool]:
    places = [place for key in DETACH_KEYS if (place := keys.find(key)) >= 0]
    return (keys[: min(places)], True) if places else (keys, False)


def _title(text: str) -> bytes:
    """Told in the window's title: the screen belongs to the session."""
    return b"\x1b]2;" + text.encode() + b"\x07"
