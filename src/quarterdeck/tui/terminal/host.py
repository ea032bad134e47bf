"""`EmulatorHost`: the cockpit's end of the process in which all emulators run.

            feed, resize, scroll ...                     bytes, sizes
  view  ---------------------------->  Emulator  --------------------->  worker process
        <----------------------------            <---------------------  Session, GhosttyCore
            on_frame, on_reply                        frames, replies

`OutputPump` feeds the output of a `TerminalSource` to an emulator.

The process is started at the first terminal (or by `start`) and again when it dies; every terminal
is then restored from the output kept, one after the other, so that one which crashes it
is identified and given up alone.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, cast

from quarterdeck.tui.terminal.channel import Parcel
from quarterdeck.tui.terminal.decoder import clean_title
from quarterdeck.tui.terminal.emulator import COMMAND, Child, Emulator, EmulatorPhase, EmulatorSink

STRIKES = 2
"""How often one terminal's output may crash the process."""
START_SECONDS = 30.0
DEATHS, DEATHS_SECONDS = 6, 60.0
"""After this many crashes within this many seconds every terminal is given up."""

KILLED = "This terminal cannot be shown: its output stopped the terminal emulator twice."
NOT_STARTED = "This terminal cannot be shown: the terminal emulator did not start."
KEEPS_DYING = "This terminal cannot be shown: the terminal emulator keeps stopping."


class Offers(StrEnum):
    """What to do with a text that a program wants on the clipboard (OSC 52)."""

    ASK = "ask"
    REFUSE = "refuse"


class EmulatorHost:
    """One per cockpit. Owns the process; `close` ends it."""

    def __init__(self, command: Sequence[str] = COMMAND, *, offers: Offers = Offers.ASK) -> None:
        self.offers = offers
        self._command = command
        self._emulators: list[Emulator] = []
        self._numbered: dict[int, Emulator] = {}
        self._number = 0
        self._failed_starts = 0
        self._child: Child | None = None
        self._stir = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._deaths: deque[float] = deque(maxlen=DEATHS)

    @property
    def pid(self) -> int | None:
        """The id of the emulators' process, None when there is none."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start the process ahead of the first terminal; it needs about 0.3 seconds."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="emulators")

    def open(self, sink: EmulatorSink, cols: int, rows: int) -> Emulator:
        """Return a new terminal with an empty screen."""
        self.start()
        emulator = Emulator(sink, cols, rows, self._want)
        self._emulators.append(emulator)
        self._stir.set()
        return emulator

    async def close(self) -> None:
        """End every terminal and the process."""
        for emulator in self._emulators:
            emulator.close()
        self._emulators.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _want(self) -> None:
        self.start()
        self._stir.set()

    def _take(self, parcel: Parcel) -> None:
        emulator = self._numbered.get(parcel.terminal)
        if emulator is not None and emulator.number == parcel.terminal:
            emulator.take(parcel)

    def _changed(self) -> None:
        child = self._child
        if child is not None and child.ended:
            for emulator in self._emulators:
                emulator.lost()
        self._stir.set()

    async def _run(self) -> None:
        while True:
            self._child = child = Child(self._take, self._changed, self._command)
            try:
                if await self._start_child(child):
                    await self._serve(child)
            finally:
                await child.stop()
                self._child = None
            self._judge(child)
            await self._rest()

    async def _start_child(self, child: Child) -> bool:
        try:
            async with asyncio.timeout(START_SECONDS):
                await child.start()
                while not (child.ready or child.ended):
                    await self._next_change()
        except (OSError, TimeoutError):
            return False
        return child.ready

    async def _serve(self, child: Child) -> None:
        """Attach terminals as they come, until the process has ended."""
        while not child.ended:
            waiting = self._waiting()
            if not waiting:
                await self._next_change()
                continue
            try:
                async with asyncio.timeout(START_SECONDS):
                    await waiting[0].attach(child, self._next_number(waiting[0]))
            except TimeoutError:
                child.abort()

    def _next_number(self, emulator: Emulator) -> int:
        self._numbered.pop(emulator.number, None)
        self._number += 1
        self._numbered[self._number] = emulator
        return self._number

    def _waiting(self) -> list[Emulator]:
        self._emulators = [e for e in self._emulators if e.phase is not EmulatorPhase.CLOSED]
        self._numbered = {e.number: e for e in self._emulators if e.number}
        return [e for e in self._emulators if e.phase is EmulatorPhase.WAITING]

    def _judge(self, child: Child) -> None:
        """Decide which terminals are given up after the process died."""
        now = asyncio.get_running_loop().time()
        self._deaths.append(now)
        often = len(self._deaths) == DEATHS and now - self._deaths[0] < DEATHS_SECONDS
        self._failed_starts = 0 if child.ready else self._failed_starts + 1
        never = self._failed_starts >= STRIKES
        for emulator in self._waiting():
            if never:
                emulator.fail(NOT_STARTED)
            elif often:
                emulator.fail(KEEPS_DYING)
            elif emulator.strikes >= STRIKES:
                emulator.fail(KILLED)
        if never or often:
            self._deaths.clear()
            self._failed_starts = 0

    async def _rest(self) -> None:
        """Wait until a process is needed again."""
        while not self._waiting():
            await self._next_change()

    async def _next_change(self) -> None:
        self._stir.clear()
        await self._stir.wait()


@dataclass(frozen=True, slots=True)
class Replay:
    """The retained tail of the terminal's output, at its current size.

    With `reset` the screen starts again from `data`; without it `data` follows the previous output.
    """

    data: bytes
    cols: int
    rows: int
    reset: bool = True


@dataclass(frozen=True, slots=True)
class OutputEvent:
    """New output, in order, without gaps or repeats."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has another size from here on in the output."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Exited:
    """The shell ended; nothing follows. `code` is None when it is unknown."""

    code: int | None


@dataclass(frozen=True, slots=True)
class StreamLost:
    """The stream broke; the source retries automatically after `retry_in` seconds."""

    message: str
    retry_in: float


@dataclass(frozen=True, slots=True)
class StreamRestored:
    """The stream is back; output continues where it was."""


SourceItem = Replay | OutputEvent | Resized | Exited | StreamLost | StreamRestored


class TerminalSource(Protocol):
    """One terminal session, seen from the cockpit."""

    def stream(self) -> AsyncIterator[SourceItem]:
        """Return the output from its retained tail on: first a `Replay`, then new output.

        Written as an async generator (`async def stream(self)` with `yield`). It reconnects
        automatically (`StreamLost`, `StreamRestored`) and ends after `Exited`. The view reads only as fast as it
        can, so the source must bound its buffers; the view closes it with `aclose` when it is removed.
        Every size change is reported as `Resized`, including those requested by this view.
        """
        ...

    async def send(self, data: str) -> None:
        """Type `data` (any length). While the stream is lost it is kept and sent later, in order.

        Raises nothing for a broken connection; what cannot be kept is reported with `StreamLost`.
        """
        ...

    async def resize(self, cols: int, rows: int) -> None:
        """Request a size, within 2..500 x 1..200. While the connection is lost the newest replaces the others."""
        ...


@dataclass(frozen=True, slots=True)
class LinkChange:
    """The state of the connection has changed."""

    ended: bool = False
    code: int | None = None
    restarted: bool = False


class OutputPump:
    """Reads the stream as fast as the emulator processes it."""

    def __init__(
        self, source: TerminalSource, emulator: Emulator, changed: Callable[[LinkChange], None]
    ) -> None:
        self._source = source
        self._emulator = emulator
        self._changed = changed
        self.ended = False
        self.note = ""
        """One line about a lost connection; empty when there is none."""
        self.farewell = ""
        """One line about the end of the shell."""

    async def run(self) -> None:
        """Feed until the stream ends."""
        # Closed here, and not whenever the generator is collected.
        stream = cast("AsyncGenerator[SourceItem]", self._source.stream())
        async with aclosing(stream):
            async for item in stream:
                await self._take(item)

    async def _take(self, item: SourceItem) -> None:
        match item:
            case OutputEvent(data):
                await self._emulator.feed(data)
            case Replay():
                await self._replay(item)
            case Resized(cols, rows):
                self._emulator.resize(cols, rows)
            case Exited(code):
                self._end(code)
            case StreamLost(message, retry_in):
                wait = f" Trying again in {retry_in:.0f} s." if retry_in else ""
                self._set_note(f" {clean_title(message)}{wait}")
            case StreamRestored():
                self._set_note("")

    async def _replay(self, item: Replay) -> None:
        if item.reset:
            self._emulator.reset(item.cols, item.rows)
            self._changed(LinkChange(restarted=True))
        else:
            self._emulator.resize(item.cols, item.rows)
        await self._emulator.feed(item.data, replay=True)

    def _set_note(self, note: str) -> None:
        self.note = note
        self._changed(LinkChange())

    def _end(self, code: int | None) -> None:
        self.ended = True
        code_note = "" if code is None else f" with code {code}"
        self.farewell = f" The shell ended{code_note}."
        self._changed(LinkChange(ended=True, code=code))
