"""Real pseudo-terminals and a source over them, for the terminal's tests."""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from quarterdeck.tui.terminal.channel import FrameDelta
from quarterdeck.tui.terminal.host import (
    EmulatorHost,
    Exited,
    OutputEvent,
    Replay,
    Resized,
    SourceItem,
)
from tests.support.waiting import eventually

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "TERM": "xterm-256color",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PS1": "$ ",
    "HOME": "/nonexistent",
    "HISTFILE": "",
}


class Program:
    """A program in a pseudo-terminal of its own."""

    def __init__(self, *command: str, cols: int = 80, rows: int = 24) -> None:
        self.size = cols, rows
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], list(command), ENVIRONMENT)
        self.resize(cols, rows)
        os.set_blocking(self.fd, False)

    def resize(self, cols: int, rows: int) -> None:
        self.size = cols, rows
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    async def read(self) -> bytes:
        """What it printed; empty at its end."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self.fd, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self.fd)
        try:
            return os.read(self.fd, 65536)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self.fd, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.001)
            except OSError:
                return

    def close(self) -> int:
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ProgramSource:
    """A `TerminalSource` over a program in a pseudo-terminal."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sent: list[str] = []
        self.sizes: list[tuple[int, int]] = []
        self._items: asyncio.Queue[Resized] = asyncio.Queue()

    async def stream(self) -> AsyncIterator[SourceItem]:
        yield Replay(b"", *self.program.size)
        while data := await self.program.read():
            while not self._items.empty():
                yield self._items.get_nowait()
            yield OutputEvent(data)
        yield Exited(None)

    async def send(self, data: str) -> None:
        self.sent.append(data)
        await self.program.write(data.encode())

    async def resize(self, cols: int, rows: int) -> None:
        self.sizes.append((cols, rows))
        self.program.resize(cols, rows)
        self._items.put_nowait(Resized(cols, rows))


class ListSource:
    """A `TerminalSource` that yields what the test puts into it."""

    def __init__(self, *items: SourceItem) -> None:
        self.sent: list[str] = []
        self.sizes: list[tuple[int, int]] = []
        self.streams = 0
        self.closed = 0
        self._items: asyncio.Queue[SourceItem] = asyncio.Queue()
        for item in items or (Replay(b"", 80, 24),):
            self._items.put_nowait(item)

    def put(self, item: SourceItem) -> None:
        self._items.put_nowait(item)

    async def stream(self) -> AsyncIterator[SourceItem]:
        self.streams += 1
        try:
            while True:
                yield await self._items.get()
        finally:
            self.closed += 1

    async def send(self, data: str) -> None:
        self.sent.append(data)

    async def resize(self, cols: int, rows: int) -> None:
        self.sizes.append((cols, rows))
        self.put(Resized(cols, rows))


class Sink:
    """Keeps what an emulator tells."""

    def __init__(self) -> None:
        self.frames: list[FrameDelta] = []
        self.rows: dict[int, str] = {}
        self.replies = b""
        self.failed = ""
        self.offered: list[str] = []
        self.anew = 0
        self.painted: Callable[[], None] = lambda: None

    def on_frame(self, frame: FrameDelta) -> None:
        self.frames.append(frame)
        for y, row in frame.rows:
            self.rows[y] = "".join([run.text for run in row]).rstrip()
        self.painted()

    def on_reply(self, data: bytes) -> None:
        self.replies += data

    def on_clipboard(self, text: str) -> None:
        self.offered.append(text)

    def on_restart(self) -> None:
        self.anew += 1

    def on_failed(self, sentence: str) -> None:
        self.failed = sentence


@pytest.fixture
def wait_for() -> Callable[..., Awaitable[None]]:
    return eventually


@pytest.fixture
def make_program() -> Iterator[Callable[..., Program]]:
    made: list[Program] = []

    def make(*command: str, cols: int = 80, rows: int = 24) -> Program:
        made.append(Program(*command, cols=cols, rows=rows))
        return made[-1]

    yield make
    for program in made:
        program.close()


@pytest.fixture
def program_source() -> type[ProgramSource]:
    return ProgramSource


@pytest.fixture
def list_source() -> type[ListSource]:
    return ListSource


@pytest.fixture
def make_sink() -> type[Sink]:
    return Sink


@pytest.fixture
async def host() -> AsyncIterator[EmulatorHost]:
    made = EmulatorHost()
    yield made
    await made.close()
