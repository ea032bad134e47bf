"""The end of a running command's output, and when to show it again."""

import asyncio
import time
from collections.abc import Awaitable, Callable

KEPT = 64 << 10
"""Bytes of output that are kept, counted from the end."""
SHOWN_LIVE = 16 << 10
"""Bytes shown while it runs: each update repeats earlier output."""
MOST_CALLS = 200
"""Running calls of an agent that are followed; the oldest beyond them counts as ended."""
FASTEST = 0.05
SLOWEST = 2.0
_SLOWING = 200.0


class OutputTail:
    """The end of a command's output. Not decoded until it is shown: a cut may split a character."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._started = time.monotonic()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Add output."""
        self.total += len(chunk)
        self._tail += chunk
        if len(self._tail) > 2 * KEPT:
            del self._tail[:-KEPT]

    @property
    def truncated(self) -> bool:
        """Whether the output is longer than what is kept."""
        return self.total > KEPT

    def text(self, limit: int = KEPT) -> str:
        """Return the last `limit` bytes as text, after a line that says how much is left out."""
        end = bytes(self._tail[-limit:])
        omitted = self.total - len(end)
        if not omitted:
            return end.decode(errors="replace")
        valid = end.lstrip(bytes(range(0x80, 0xC0)))
        return f"[{omitted:,} bytes of earlier output left out]\n" + valid.decode(errors="replace")

    def pause(self) -> float:
        """Return the seconds to the next update: 20 a second at first, fewer the longer it runs.

        An update holds all visible output, so a long build would otherwise fill the history.
        """
        running = time.monotonic() - self._started
        return min(SLOWEST, max(FASTEST, running / _SLOWING))


class LiveOutput:
    """The output of one command. `end` stops showing it."""

    def __init__(self, show: Callable[[str], Awaitable[None]]) -> None:
        self._show = show
        self._output = OutputTail()
        self._showing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._news = False
        self.shown = False

    def add(self, text: str) -> None:
        """Add output; it is shown a little later, together with further output."""
        self._output.add(text.encode(errors="replace"))
        self._news = True
        if self._showing is None or self._showing.done():
            self._showing = asyncio.create_task(self._show_news(), name="output of a command")

    @property
    def text(self) -> str:
        """The output so far: as much as is kept."""
        return self._output.text()

    async def end(self) -> None:
        """Stop showing output; wait for a running `show`."""
        self._ended.set()
        if self._showing is not None:
            await asyncio.wait({self._showing})

    async def _show_news(self) -> None:
        while self._news:
            try:
                async with asyncio.timeout(self._output.pause()):
                    await self._ended.wait()
            except TimeoutError:
                self._news, self.shown = False, True
                await self._show(self._output.text(SHOWN_LIVE))
            else:
                return
