"""What a running command prints, shown now and then: each showing repeats what came before."""

import asyncio
from collections.abc import Awaitable, Callable

from quarterdeck.agents.output import SHOWN_LIVE, Output

Show = Callable[[str], Awaitable[None]]


class LiveOutput:
    """The output of one command. `end` stops the showing."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._output = Output()
        self._showing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._news = False
        self.shown = False

    def add(self, text: str) -> None:
        """Takes more output; it is shown a little later, with what comes until then."""
        self._output.add(text.encode(errors="replace"))
        self._news = True
        if self._showing is None or self._showing.done():
            self._showing = asyncio.create_task(self._show_news(), name="codex output")

    async def end(self) -> None:
        """Shows nothing more; returns when a showing under way is done."""
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
