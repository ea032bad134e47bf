"""Sources of a terminal's output, and the pump that feeds it to an emulator."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, cast

from quarterdeck.tui.terminal.decoder import clean_title
from quarterdeck.tui.terminal.emulator import Emulator


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
    """The terminal has another size from here on in the output, whoever requested it."""

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
