"""What a widget was doing ends with it."""

import asyncio
from collections.abc import Awaitable

import pytest
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
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


class Page(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Reading()

    @work
    async def end(self) -> None:
        self.dismiss(None)
        await asyncio.sleep(0)
        self.app.exit("ended by itself")


async def answer_while_it_goes(reading: Reading, removed: Awaitable[object]) -> None:
    """The answer comes when its parts are on their way out."""
    Slow.gone = asyncio.Event()
    going = asyncio.ensure_future(removed)
    await Slow.leaving.wait()
    reading.answer.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    Slow.gone.set()
    await going


@pytest.fixture(autouse=True)
def parts_that_go_at_once() -> None:
    Slow.leaving, Slow.gone = asyncio.Event(), asyncio.Event()
    Slow.gone.set()


async def test_an_answer_that_comes_while_a_pane_is_removed_is_nobodys() -> None:
    app = Host()
    async with app.run_test() as pilot:
        reading = app.query_one(Reading)
        reading.read()
        await pilot.pause()
        await answer_while_it_goes(reading, reading.remove())
        assert reading.found == []


async def test_an_answer_that_comes_while_a_page_is_closed_is_nobodys() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await app.push_screen(Page())
        reading = app.screen.query_one(Reading)
        reading.read()
        await pilot.pause()
        await answer_while_it_goes(reading, app.pop_screen())
        assert reading.found == []


async def test_an_answer_that_comes_while_the_app_ends_is_nobodys() -> None:
    app = Host()
    async with app.run_test() as pilot:
        reading = app.query_one(Reading)
        reading.read()
        await pilot.pause()
        await answer_while_it_goes(reading, app._shutdown())  # pyright: ignore[reportPrivateUsage]
    assert reading.found == []


async def test_a_page_is_closed_by_its_own_worker() -> None:
    app = Host()
    async with app.run_test() as pilot:
        page = Page()
        await app.push_screen(page)
        page.end()
        await pilot.pause()
    assert app.return_value == "ended by itself"
