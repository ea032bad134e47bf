"""`Emulator`: one terminal's screen, kept in the emulator's process and seen through frames."""

import asyncio
from collections.abc import Callable
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
    Command,
    Parcel,
    Report,
)
from quarterdeck.tui.terminal.child import Child
from quarterdeck.tui.terminal.core import Mode, Rgb, SelectionKind, Step
from quarterdeck.tui.terminal.decoder import FrameDecoder
from quarterdeck.tui.terminal.errors import BadFrame
from quarterdeck.tui.terminal.frames import Frame
from quarterdeck.tui.terminal.history import Chunk, Entry, History, Resize, restore

WINDOW = 128 << 10
"""Bytes that may be on their way to the process for one terminal."""
HANG_SECONDS = 15.0
"""A process that takes in nothing for so long is ended."""


class EmulatorSink(Protocol):
    """Whoever shows the terminal."""

    def on_frame(self, frame: Frame) -> None:
        """Something changed; call `Emulator.painted` when it is on the screen."""
        ...

    def on_reply(self, data: bytes) -> None:
        """The program asked something; type this into it."""
        ...

    def on_clipboard(self, text: str) -> None:
        """The program offers a text for the clipboard."""
        ...

    def on_anew(self) -> None:
        """The screen is made anew: nobody reads or searches in it."""
        ...

    def on_failed(self, sentence: str) -> None:
        """The emulator gave this terminal up; the sentence is for the reader."""
        ...


class Phase(Enum):
    """Where a terminal stands with the process."""

    WAITING = "waiting"
    ATTACHED = "attached"
    FAILED = "failed"
    CLOSED = "closed"


class Emulator:
    """One terminal. Made by `EmulatorHost.open`; every method may be called in every phase."""

    def __init__(
        self, sink: EmulatorSink, cols: int, rows: int, wanted: Callable[[], None]
    ) -> None:
        self.number = 0
        """Its number in messages, another one each time it is attached: late ones are nobody's."""
        self.phase = Phase.WAITING
        self.strikes = 0
        self._sink = sink
        self._wanted = wanted
        self._history = History(cols, rows)
        self._child: Child | None = None
        self._decoder = FrameDecoder()
        self._on_way = 0
        self._moved = asyncio.Event()
        self._shown = False
        self._colors = b""
        self._modes = Mode.NONE
        self._asked = 0
        self._answers: dict[int, asyncio.Future[str]] = {}

    # --- what the program prints ---

    async def feed(self, data: bytes, *, replay: bool = False) -> None:
        """Takes output of the program. Returns when the process is not far behind with it.

        Replies to the queries in a replay are not told, since they were answered long ago.
        """
        chunks = self._history.add(data, answer=not replay)
        child = self._child if self.phase is Phase.ATTACHED else None
        for chunk in chunks if child else ():
            await self._room()
            if self._child is not child:
                break  # the next process is fed the rest from the history
            self._send(chunk)
        while self.phase is Phase.WAITING:
            await self._change()
        await self._room()

    def reset(self, cols: int, rows: int) -> None:
        """Starts anew with an empty screen of a size, also after a failure."""
        if self.phase is Phase.CLOSED:
            return
        self._history = History(cols, rows)
        self._modes = Mode.NONE
        self.strikes = 0
        self._tell(Command.CLOSE)
        self._detach(Phase.WAITING)
        self._wanted()

    def resize(self, cols: int, rows: int) -> None:
        """The terminal has another size from here on in its output."""
        if (size := Resize(cols, rows)) != self._history.size:
            self._history.resize(cols, rows)
            if self.phase is Phase.ATTACHED:
                self._tell(Command.RESIZE, SIZE.pack(size.cols, size.rows))

    # --- what the reader does ---

    def show(self) -> None:
        """Asks for frames, beginning with the whole screen."""
        self._shown = True
        if self.phase is Phase.ATTACHED:
            self._tell(Command.SHOW)

    def hide(self) -> None:
        """Asks for no more frames; output is still taken in."""
        self._shown = False
        self._tell(Command.HIDE)

    def painted(self) -> None:
        """The last frame is on the screen; the next may come."""
        self._tell(Command.PAINTED)

    def scroll(self, lines: int) -> None:
        """Moves the part in view; negative is back."""
        self._tell(Command.SCROLL, LINES.pack(lines))

    def scroll_to_bottom(self) -> None:
        """Shows the newest rows again."""
        self._tell(Command.BOTTOM)

    def select_from(self, x: int, y: int, kind: SelectionKind) -> None:
        """Begins a selection at a cell in view."""
        self._tell(Command.SELECT, SELECT.pack(kind, x, y))

    def select_to(self, x: int, y: int) -> None:
        """Extends the selection to a cell in view."""
        self._tell(Command.SELECT, SELECT.pack(EXTEND, x, y))

    def clear_selection(self) -> None:
        """Selects nothing."""
        self._tell(Command.SELECT, SELECT.pack(CLEAR, 0, 0))

    def start_reading(self) -> None:
        """The reader takes the cursor; see `core.Core` for this and what follows."""
        self._tell(Command.READING, b"\1")

    def stop_reading(self) -> None:
        """The cursor is the program's again."""
        self._tell(Command.READING, b"\0")

    def read(self, step: Step) -> None:
        """Moves the reader, or marks."""
        self._tell(Command.READ, bytes([step]))

    def find(self, text: str) -> None:
        """Searches back from where the search began."""
        self._tell(Command.FIND, text.encode("utf-8", "ignore"))

    async def link_at(self, x: int, y: int) -> str:
        """Where a cell in view leads; empty when nowhere."""
        return await self._ask(Command.LINK, x, y, 0)

    async def link_here(self) -> str:
        """The same for where the reader is."""
        return await self._ask(Command.LINK, 0, 0, 1)

    def set_colors(self, foreground: Rgb, background: Rgb) -> None:
        """The theme's colors, told to programs that ask."""
        self._colors = COLORS.pack(*foreground, *background)
        self._tell(Command.COLORS, self._colors)

    async def selected_text(self) -> str:
        """The selected text; empty when nothing is, or when the process died meanwhile."""
        return await self._ask(Command.COPY)

    def close(self) -> None:
        """Forgets the terminal."""
        self._tell(Command.CLOSE)
        self._detach(Phase.CLOSED)

    # --- for the host ---

    async def attach(self, child: Child, number: int) -> None:
        """Brings a new process to this terminal's screen.

        When the process dies over it, the terminal is left waiting, with a strike.
        """
        self.number, self._child, self._on_way = number, child, 0
        self._decoder = FrameDecoder()
        history = self._history
        self.strikes += 1
        self._sink.on_anew()
        self._tell(Command.OPEN, SIZE.pack(history.start.cols, history.start.rows))
        if self._colors:
            self._tell(Command.COLORS, self._colors)
        if history.trimmed:
            self._tell(Command.REPLAY, restore(self._modes))
        entries, place = history.since(0)
        for entry in entries:
            await self._room()
            if self._child is not child:
                return
            self._pour(entry)
        await self._ask(Command.SYNC)
        if self._child is not child:
            return
        for entry in history.since(place)[0]:
            self._pour(entry)
        self._settle()

    def _pour(self, entry: Entry) -> None:
        match entry:
            case Resize(cols, rows):
                self._tell(Command.RESIZE, SIZE.pack(cols, rows))
            case Chunk():
                self._send(entry)

    def _settle(self) -> None:
        self.strikes = 0
        self.phase = Phase.ATTACHED
        if self._shown:
            self._tell(Command.SHOW)
        self._wake()

    def lost(self) -> None:
        """The process died. Whether this terminal's bytes were under way is counted against it."""
        if self.phase is Phase.ATTACHED and self._on_way:
            self.strikes += 1
        if self._child is not None:
            self._detach(Phase.WAITING)

    def fail(self, sentence: str) -> None:
        """Gives the terminal up."""
        if self.phase in (Phase.FAILED, Phase.CLOSED):
            return
        self._detach(Phase.FAILED)
        self._sink.on_failed(sentence)

    def take(self, parcel: Parcel) -> None:
        """A report of the process.

        Raises:
            BadFrame: it is nonsense.
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
                raise BadFrame(f"an unknown message {parcel.kind}")

    # --- inside ---

    def _send(self, chunk: Chunk) -> None:
        # What was sent once is not answered twice, even if a process died over it.
        self._tell(Command.FEED if chunk.answer else Command.REPLAY, chunk.data)
        chunk.answer = False
        self._on_way += len(chunk.data)

    def _tell(self, command: Command, body: bytes = b"") -> None:
        if self._child is not None:
            self._child.say(command, self.number, body)

    async def _ask(self, command: Command, *rest: int) -> str:
        if self._child is None:
            return ""
        self._asked += 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[self._asked] = answer
        form = LINK if rest else NUMBER
        self._tell(command, form.pack(self._asked, *rest))
        return await answer

    async def _room(self) -> None:
        """Waits until the process took in enough. One that does not is hung, and ended."""
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

    def _detach(self, phase: Phase) -> None:
        self.phase = phase
        self._child = None
        self._on_way = 0
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result("")
        self._answers.clear()
        self._wake()
