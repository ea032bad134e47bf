"""Takes what a source yields to the emulator, and keeps what there is to say about the link."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from quarterdeck.tui.terminal.emulator import Emulator
from quarterdeck.tui.terminal.source import (
    Exited,
    Lost,
    Output,
    Replay,
    Resized,
    Restored,
    SourceItem,
    TerminalSource,
)
from quarterdeck.tui.terminal.text import clean_title


@dataclass(frozen=True, slots=True)
class Link:
    """What changed about the link."""

    ended: bool = False
    code: int | None = None
    restarted: bool = False


class Feeder:
    """Reads the stream as fast as the emulator takes it in."""

    def __init__(
        self, source: TerminalSource, emulator: Emulator, changed: Callable[[Link], None]
    ) -> None:
        self._source = source
        self._emulator = emulator
        self._changed = changed
        self.ended = False
        self.note = ""
        """One line about a lost link; empty when there is none."""
        self.farewell = ""
        """One line about the end of the shell."""

    async def run(self) -> None:
        """Feeds until the stream ends."""
        # Closed here, and not whenever the generator is collected.
        stream = cast("AsyncGenerator[SourceItem]", self._source.stream())
        async with aclosing(stream):
            async for item in stream:
                await self._take(item)

    async def _take(self, item: SourceItem) -> None:
        match item:
            case Output(data):
                await self._emulator.feed(data)
            case Replay():
                await self._replay(item)
            case Resized(cols, rows):
                self._emulator.resize(cols, rows)
            case Exited(code):
                self._end(code)
            case Lost(message, retry_in):
                wait = f" Trying again in {retry_in:.0f} s." if retry_in else ""
                self._say(f" {clean_title(message)}{wait}")
            case Restored():
                self._say("")

    async def _replay(self, item: Replay) -> None:
        if item.reset:
            self._emulator.reset(item.cols, item.rows)
            self._changed(Link(restarted=True))
        else:
            self._emulator.resize(item.cols, item.rows)
        await self._emulator.feed(item.data, replay=True)

    def _say(self, note: str) -> None:
        self.note = note
        self._changed(Link())

    def _end(self, code: int | None) -> None:
        self.ended = True
        told = "" if code is None else f" with code {code}"
        self.farewell = f" The shell ended{told}."
        self._changed(Link(ended=True, code=code))
