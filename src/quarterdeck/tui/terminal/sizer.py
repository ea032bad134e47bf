"""Tells the source the size of the widget: at once the first time, then when it has settled."""

import asyncio

from quarterdeck.tui.terminal.core import MAX_COLS, MAX_ROWS, MIN_COLS, MIN_ROWS
from quarterdeck.tui.terminal.source import TerminalSource

SETTLE_SECONDS = 0.05

Size = tuple[int, int]


def program_size(width: int, height: int) -> Size:
    """The size to ask for: what the widget has room for, but never less than a core can take."""
    return min(max(width, MIN_COLS), MAX_COLS), min(max(height, MIN_ROWS), MAX_ROWS)


class Sizer:
    """Asks for one size for each settled change."""

    def __init__(self, source: TerminalSource) -> None:
        self._source = source
        self._wanted: Size | None = None
        self._asked: Size | None = None
        self._changed = asyncio.Event()

    def want(self, width: int, height: int) -> None:
        """The widget has this size now."""
        self._wanted = program_size(width, height)
        self._changed.set()

    def claim(self, present: Size) -> None:
        """The reader is here: asks again if somebody else gave the terminal another size."""
        if self._wanted is not None and present != self._wanted:
            self._asked = None
            self._changed.set()

    async def run(self) -> None:
        """Asks until canceled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._asked is not None:
                await self._settle()
            if self._wanted is not None and self._wanted != self._asked:
                self._asked = self._wanted
                await self._source.resize(*self._wanted)

    async def _settle(self) -> None:
        while True:
            try:
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                return
            self._changed.clear()
