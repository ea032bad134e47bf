"""What a widget was doing ends with it."""

import asyncio

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from quarterdeck.tui.removal import EndsWork


class Slow(Static):
    """A part that takes its time to go."""

    leaving = asyncio.Event()
    gone = asyncio.Event()

    async def on_unmount(self) -> None:
        self.leaving.set()
        await self.gone.wait()


class Reading(Vertical):
    """Reads, then shows what it read."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = asyncio.Event()
        self.found: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static(id="shown")
        yield Slow()

    @work
    async def read(self) -> None:
        await self.answer.wait()
        self.found.append("answer")
        self.query_one("#shown", Static).update("answer")


class Host(EndsWork):
    def compose(self) -> ComposeResult:
        yield Reading()


async def test_an_answer_that_comes_while_a_pane_is_removed_is_nobodys() -> None:
    Slow.leaving, Slow.gone = asyncio.Event(), asyncio.Event()
    app = Host()
    async with app.run_test() as pilot:
        reading = app.query_one(Reading)
        reading.read()
        await pilot.pause()
        removed = reading.remove()
        await Slow.leaving.wait()
        reading.answer.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        Slow.gone.set()
        await removed
        assert reading.found == []
