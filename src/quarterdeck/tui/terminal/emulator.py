"""The cockpit's side of the terminal emulator: its process, and one terminal in it."""

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from quarterdeck.tui.terminal.channel import (
    CLEAR,
    COLORS,
    EXTEND,
    LINES,
    LINK,
    NUMBER,
    SELECT,
    SIZE,
    BadFrameError,
    EmulatorCommand,
    FrameDelta,
    Parcel,
    Report,
    Splitter,
    pack,
)
from quarterdeck.tui.terminal.core import (
    Entry,
    OutputChunk,
    OutputHistory,
    Resize,
    Rgb,
    SelectionKind,
    Step,
    TerminalMode,
    restore,
)
from quarterdeck.tui.terminal.decoder import FrameDecoder
from quarterdeck.tui.terminal.kitty import restore_flags

END_SECONDS = 0.5
COMMAND = (sys.executable, "-I", "-m", "quarterdeck.tui.terminal.worker")


class Child(asyncio.Protocol):
    """One run of the process. `changed` is called when it is ready, and when it has ended."""

    def __init__(
        self,
        take: Callable[[Parcel], None],
        changed: Callable[[], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._command = command
        self.ready = False
        self.ended = False
        self._take = take
        self._changed = changed
        self._splitter = Splitter()
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The process id, None before the start."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process; it is `ready` when it accepts messages.

        Raises:
            OSError: it cannot be started.
        """
        here, there = socket.socketpair()
        try:
            with there:
                # A separate session: a hang-up or interrupt of the cockpit's terminal is not for it.
                # What the library prints when it crashes must not reach the user's screen.
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=there.fileno(),
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: self, sock=here)
        except BaseException:
            here.close()
            await self.stop()
            raise

    def say(self, kind: int, terminal: int, body: bytes = b"") -> None:
        """Send a command; ignored when the process has ended."""
        if self._transport is not None and not self.ended:
            self._transport.write(pack(kind, terminal, body))

    async def stop(self) -> None:
        """End the process and wait for its end."""
        self.abort()
        if self._process is None:
            return
        try:
            # It ends automatically at the end of its input; a hung one does not.
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Part of `asyncio.Protocol`: a process that talks nonsense counts as dead."""
        try:
            for parcel in self._splitter.feed(data):
                if parcel.kind == Report.READY:
                    self.ready = True
                    self._changed()
                else:
                    self._take(parcel)
        except BadFrameError:
            self.abort()

    def abort(self) -> None:
        """Give the process up; it counts as ended from now on."""
        if self._transport is not None:
            self._transport.abort()
        if not self.ended:
            self.ended = True
            self._changed()

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of `asyncio.Protocol`."""
        self.abort()


WINDOW = 128 << 10
"""Bytes that may be on their way to the process for one terminal."""
HANG_SECONDS = 15.0
"""Seconds after which a process that reads no input is ended."""


class EmulatorSink(Protocol):
    """The owner of a terminal's display."""

    def on_frame(self, frame: FrameDelta) -> None:
        """Take a changed frame; call `Emulator.painted` when it is on the screen."""
        ...

    def on_reply(self, data: bytes) -> None:
        """Type the reply to a query into the program."""
        ...

    def on_clipboard(self, text: str) -> None:
        """Take a text that the program offers for the clipboard."""
        ...

    def on_restart(self) -> None:
        """Note that the screen is created again: reading and searching have ended."""
        ...

    def on_failed(self, sentence: str) -> None:
        """Note that the emulator gave this terminal up; the sentence is for the user."""
        ...


class EmulatorPhase(Enum):
    """State of a terminal in its relation to the process."""

    WAITING = "waiting"
    ATTACHED = "attached"
    FAILED = "failed"
    CLOSED = "closed"


class Emulator:
    """One terminal. Created by `EmulatorHost.open`; every method may be called in every phase."""

    def __init__(
        self, sink: EmulatorSink, cols: int, rows: int, wanted: Callable[[], None]
    ) -> None:
        self.number = 0
        """Its number in messages, a new one each time it is attached, so that late messages are ignored."""
        self.phase = EmulatorPhase.WAITING
        self.strikes = 0
        self._sink = sink
        self._wanted = wanted
        self._history = OutputHistory(cols, rows)
        self._child: Child | None = None
        self._decoder = FrameDecoder()
        self._on_way = 0
        self._moved = asyncio.Event()
        self._shown = False
        self._colors = b""
        self._modes = TerminalMode.NONE
        self._last_query = 0
        self._answers: dict[int, asyncio.Future[str]] = {}

    # --- output of the program ---

    async def feed(self, data: bytes, *, replay: bool = False) -> None:
        """Process output of the program. Returns when the process has nearly caught up.

        Queries in a replay get no reply, since they were answered long ago.
        """
        chunks = self._history.add(data, answer=not replay)
        child = self._child if self.phase is EmulatorPhase.ATTACHED else None
        for chunk in chunks if child else ():
            await self._room()
            if self._child is not child:
                break  # the next process is fed the rest from the history
            self._send(chunk)
        while self.phase is EmulatorPhase.WAITING:
            await self._change()
        await self._room()

    def reset(self, cols: int, rows: int) -> None:
        """Start again with an empty screen of a size, also after a failure."""
        if self.phase is EmulatorPhase.CLOSED:
            return
        self._history = OutputHistory(cols, rows)
        self._modes = TerminalMode.NONE
        self.strikes = 0
        self._send_command(EmulatorCommand.CLOSE)
        self._detach(EmulatorPhase.WAITING)
        self._wanted()

    def resize(self, cols: int, rows: int) -> None:
        """Note that the terminal has another size from here on in its output."""
        if (size := Resize(cols, rows)) != self._history.size:
            self._history.resize(cols, rows)
            if self.phase is EmulatorPhase.ATTACHED:
                self._send_command(EmulatorCommand.RESIZE, SIZE.pack(size.cols, size.rows))

    # --- actions of the reader ---

    def show(self) -> None:
        """Request frames, starting with the whole screen."""
        self._shown = True
        if self.phase is EmulatorPhase.ATTACHED:
            self._send_command(EmulatorCommand.SHOW)

    def hide(self) -> None:
        """Stop requesting frames; output is still processed."""
        self._shown = False
        self._send_command(EmulatorCommand.HIDE)

    def painted(self) -> None:
        """Note that the last frame is on the screen; the next may come."""
        self._send_command(EmulatorCommand.PAINTED)

    def scroll(self, lines: int) -> None:
        """Move the part in view; negative is back."""
        self._send_command(EmulatorCommand.SCROLL, LINES.pack(lines))

    def scroll_to_bottom(self) -> None:
        """Show the newest rows again."""
        self._send_command(EmulatorCommand.BOTTOM)

    def select_from(self, x: int, y: int, kind: SelectionKind) -> None:
        """Start a selection at a cell in view."""
        self._send_command(EmulatorCommand.SELECT, SELECT.pack(kind, x, y))

    def select_to(self, x: int, y: int) -> None:
        """Extend the selection to a cell in view."""
        self._send_command(EmulatorCommand.SELECT, SELECT.pack(EXTEND, x, y))

    def clear_selection(self) -> None:
        """Clear the selection."""
        self._send_command(EmulatorCommand.SELECT, SELECT.pack(CLEAR, 0, 0))

    def start_reading(self) -> None:
        """Note that the reader takes the cursor; see `ghostty.GhosttyCore` for this and what follows."""
        self._send_command(EmulatorCommand.READING, b"\1")

    def stop_reading(self) -> None:
        """Note that the cursor is the program's again."""
        self._send_command(EmulatorCommand.READING, b"\0")

    def read(self, step: Step) -> None:
        """Move the reader, or mark."""
        self._send_command(EmulatorCommand.READ, bytes([step]))

    def find(self, text: str) -> None:
        """Search backwards from where the search started."""
        self._send_command(EmulatorCommand.FIND, text.encode("utf-8", "ignore"))

    async def link_at(self, x: int, y: int) -> str:
        """Return the link at a cell in view; empty when there is none."""
        return await self._ask(EmulatorCommand.LINK, x, y, 0)

    async def link_here(self) -> str:
        """Return the link at the reader's position."""
        return await self._ask(EmulatorCommand.LINK, 0, 0, 1)

    def set_colors(self, foreground: Rgb, background: Rgb) -> None:
        """Set the theme's colors, which programs may ask for."""
        self._colors = COLORS.pack(*foreground, *background)
        self._send_command(EmulatorCommand.COLORS, self._colors)

    async def selected_text(self) -> str:
        """Return the selected text; empty without a selection, or when the process ended meanwhile."""
        return await self._ask(EmulatorCommand.COPY)

    def close(self) -> None:
        """Forget the terminal."""
        self._send_command(EmulatorCommand.CLOSE)
        self._detach(EmulatorPhase.CLOSED)

    # --- for the host ---

    async def attach(self, child: Child, number: int) -> None:
        """Restore this terminal's screen in a new process.

        When the process dies during this, the terminal is left waiting, with a strike.
        """
        self.number, self._child, self._on_way = number, child, 0
        self._decoder = FrameDecoder()
        history = self._history
        self.strikes += 1
        self._sink.on_restart()
        self._send_command(EmulatorCommand.OPEN, SIZE.pack(history.start.cols, history.start.rows))
        if self._colors:
            self._send_command(EmulatorCommand.COLORS, self._colors)
        if history.trimmed:
            self._send_command(
                EmulatorCommand.REPLAY, restore(self._modes) + restore_flags(self._modes)
            )
        entries, place = history.since(0)
        for entry in entries:
            await self._room()
            if self._child is not child:
                return
            self._pour(entry)
        await self._ask(EmulatorCommand.SYNC)
        if self._child is not child:
            return
        for entry in history.since(place)[0]:
            self._pour(entry)
        self._settle()

    def _pour(self, entry: Entry) -> None:
        match entry:
            case Resize(cols, rows):
                self._send_command(EmulatorCommand.RESIZE, SIZE.pack(cols, rows))
            case OutputChunk():
                self._send(entry)

    def _settle(self) -> None:
        self.strikes = 0
        self.phase = EmulatorPhase.ATTACHED
        if self._shown:
            self._send_command(EmulatorCommand.SHOW)
        self._wake()

    def lost(self) -> None:
        """Note that the process died; it counts against this terminal if its bytes were under way."""
        if self.phase is EmulatorPhase.ATTACHED and self._on_way:
            self.strikes += 1
        if self._child is not None:
            self._detach(EmulatorPhase.WAITING)

    def fail(self, sentence: str) -> None:
        """Give the terminal up."""
        if self.phase in (EmulatorPhase.FAILED, EmulatorPhase.CLOSED):
            return
        self._detach(EmulatorPhase.FAILED)
        self._sink.on_failed(sentence)

    def take(self, parcel: Parcel) -> None:
        """Handle a report of the process.

        Raises:
            BadFrameError: it is invalid.
        """
        match parcel.kind:
            case Report.FRAME:
                frame = self._decoder.decode(parcel.body)
                self._modes = frame.state.modes
                self._sink.on_frame(frame)
            case Report.REPLY:
                self._sink.on_reply(parcel.body)
            case Report.CONSUMED:
                self._on_way = max(0, self._on_way - int.from_bytes(parcel.body[:4], "little"))
                self._wake()
            case Report.CLIPBOARD:
                self._sink.on_clipboard(parcel.body.decode("utf-8", "replace"))
            case Report.COPIED | Report.SYNCED | Report.LINKED:
                token = int.from_bytes(parcel.body[:4], "little")
                if (answer := self._answers.pop(token, None)) and not answer.done():
                    answer.set_result(parcel.body[4:].decode("utf-8", "replace"))
            case _:
                raise BadFrameError(f"an unknown message {parcel.kind}")

    # --- inside ---

    def _send(self, chunk: OutputChunk) -> None:
        # What was sent once is not answered twice, even if a process died because of it.
        self._send_command(
            EmulatorCommand.FEED if chunk.answer else EmulatorCommand.REPLAY, chunk.data
        )
        chunk.answer = False
        self._on_way += len(chunk.data)

    def _send_command(self, command: EmulatorCommand, body: bytes = b"") -> None:
        if self._child is not None:
            self._child.say(command, self.number, body)

    async def _ask(self, command: EmulatorCommand, *rest: int) -> str:
        if self._child is None:
            return ""
        self._last_query += 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[self._last_query] = answer
        form = LINK if rest else NUMBER
        self._send_command(command, form.pack(self._last_query, *rest))
        return await answer

    async def _room(self) -> None:
        """Wait until the process has read enough. One that does not is hung, and is ended."""
        child = self._child
        try:
            async with asyncio.timeout(HANG_SECONDS):
                while self._on_way >= WINDOW and self._child is child:
                    await self._change()
        except TimeoutError:
            if child is not None and self._child is child:
                child.abort()

    async def _change(self) -> None:
        self._moved.clear()
        await self._moved.wait()

    def _wake(self) -> None:
        self._moved.set()

    def _detach(self, phase: EmulatorPhase) -> None:
        self.phase = phase
        self._child = None
        self._on_way = 0
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result("")
        self._answers.clear()
        self._wake()
