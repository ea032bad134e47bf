"""What a widget was doing ends with it."""

import asyncio
from collections.abc import Awaitable

import pytest
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Static
from textual.worker import WorkerCancelled

from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.textual_ext.worker_cleanup import WorkerCleanup
from tests.support.waiting import WAIT_SECONDS


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


class Host(WorkerCleanup):
    def compose(self) -> ComposeResult:
        yield Reading()


class Page(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Reading()

    @work
    async def read(self) -> None:
        await self.query_one(Reading).answer.wait()
        self.query_one(Reading).found.append("answer")

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


async def test_an_answer_that_comes_to_a_page_itself_while_it_is_closed_is_nobodys() -> None:
    app = Host()
    async with app.run_test() as pilot:
        page = Page()
        await app.push_screen(page)
        reading = page.query_one(Reading)
        page.read()
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


async def test_work_that_begins_while_its_pane_is_removed_is_not_done() -> None:
    app = Host()
    async with app.run_test():
        reading = app.query_one(Reading)
        reading.answer.set()
        Slow.gone = asyncio.Event()
        going = asyncio.ensure_future(reading.remove())
        await Slow.leaving.wait()
        with pytest.raises(WorkerCancelled):
            await reading.read().wait()
        Slow.gone.set()
        await going
        assert reading.found == []


async def test_a_page_is_closed_by_its_own_worker() -> None:
    app = Host()
    async with app.run_test() as pilot:
        page = Page()
        await app.push_screen(page)
        page.end()
        await pilot.pause()
    assert app.return_value == "ended by itself"


async def test_what_waits_for_a_frame_is_done_though_the_screen_before_it_closes() -> None:
    app = Host()
    async with app.run_test() as pilot:
        page: SettledLayout[None] = SettledLayout()
        await app.push_screen(page)
        dialog: ModalScreen[None] = ModalScreen()
        await app.push_screen(dialog)
        await pilot.pause()
        busy, free, asked, called = (asyncio.Event() for _ in range(4))
        calls: list[str] = []

        def call() -> None:
            calls.append("called")
            called.set()

        async def hold() -> None:
            busy.set()
            await free.wait()

        dialog.call_later(hold)
        await busy.wait()
        page.call_after_refresh(call)
        page.call_later(asked.set)
        await asked.wait()
        # Textual keeps it in the dialog, and drops it when that closes before its next frame.
        assert dialog._callbacks
        dialog._callbacks.clear()
        free.set()
        await app.pop_screen()
        async with asyncio.timeout(WAIT_SECONDS):
            await called.wait()
        page.call_after_refresh(call)
        await pilot.pause()
        await app.push_screen(ModalScreen())
        await app.pop_screen()
        await pilot.pause()
        assert calls == ["called"] * 2
