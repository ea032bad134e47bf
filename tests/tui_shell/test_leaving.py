"""A screen that is closed draws nothing more: its parts may be gone before it is."""

import asyncio

import pytest

from quarterdeck.store.signals import AutomationsChanged, ConnectionChanged, ListChanged
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.settings.screen import SettingsScreen
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit


async def test_what_was_to_be_drawn_when_the_page_closed(frozen: FrozenCockpit) -> None:
    drawn: list[str] = []
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("comma")
        await eventually(lambda: isinstance(frozen.screen, SettingsScreen))
        page = frozen.screen
        page.call_after_refresh(drawn.append, "open")
        await pilot.pause()
        page.call_after_refresh(drawn.append, "closed")
        await page.dismiss(None)
        assert isinstance(frozen.screen, MainScreen)
        frozen.screen.call_after_refresh(drawn.append, "behind it")
        await eventually(lambda: "behind it" in drawn)
    assert drawn == ["open", "behind it"]


async def test_the_first_frame_of_a_cockpit_that_closes_is_not_drawn(frozen: FrozenCockpit) -> None:
    async with frozen.run_test(size=(80, 24)):
        pass
    frozen.on_main_screen_filled()  # its content was loaded, or its time was over, just then


@pytest.mark.parametrize("key", ["comma", "e", "a"])
async def test_what_the_store_tells_while_a_page_closes(frozen: FrozenCockpit, key: str) -> None:
    frozen.add("fix-login")
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await eventually(lambda: isinstance(frozen.screen, PageScreen))
        await pilot.pause()
        page = frozen.screen
        page.dismiss(None)
        for _ in range(200):  # steps of the loop: all in which its parts go, and more
            for change in (ListChanged(), ConnectionChanged(), AutomationsChanged()):
                frozen.app_state.publish(change)
            await asyncio.sleep(0)
        assert not page.is_attached
