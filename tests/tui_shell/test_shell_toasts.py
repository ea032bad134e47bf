"""Notices over the screen leave free what a person writes in."""

from typing import Any

import pytest
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets._toast import Toast

from quarterdeck.tui.widgets.composer import Composer
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text


def covered(app: FrozenCockpit) -> list[Any]:
    """Where notices stand."""
    return [toast.region for toast in app.screen.query(Toast)]


async def settled(pilot: Pilot[Any], count: int) -> None:
    app: Any = pilot.app
    await eventually(lambda: len(covered(app)) == count and all(covered(app)), "the notices")
    await pilot.pause()
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_no_field_of_a_form_is_covered(frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    frozen.add("alpha")
    async with frozen.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("n")
        await eventually(
            lambda: frozen.focused and frozen.focused.id == "message", "the first field"
        )
        frozen.notify("Something happened to another replica.", title="Told", timeout=600)
        first = frozen.screen.focused
        ends: set[bool] = set()
        for _ in range(30):
            await settled(pilot, 1)
            (toast,) = covered(frozen)
            focused = frozen.screen.focused
            assert focused is not None
            if not isinstance(focused, VerticalScroll):  # what scrolls around the fields
                assert not toast.overlaps(focused.region), focused
            ends.add(toast.y < size[1] / 2)
            await pilot.press("tab")
            if frozen.screen.focused is first:
                break
        assert ends == {True, False}


async def test_a_notice_does_not_cover_the_composer(frozen: FrozenCockpit) -> None:
    frozen.add("alpha")
    async with frozen.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await eventually(lambda: type(frozen.focused).__name__ == "Composer")
        frozen.notify("Copied.", timeout=600)
        await settled(pilot, 1)
        (toast,) = covered(frozen)
        assert frozen.focused is not None
        assert not toast.overlaps(frozen.focused.region)


QUITS = "ctrl+q quits (agents keep running)"


@pytest.mark.long
async def test_ctrl_c_says_how_to_quit_and_clears_a_draft(frozen: FrozenCockpit) -> None:
    frozen.add("fix-login")
    async with frozen.run_test(size=(100, 30), notifications=True) as pilot:
        await eventually(lambda: "fix-login" in screen_text(frozen))
        await pilot.press("ctrl+c")
        await eventually(lambda: QUITS in screen_text(frozen))
        assert "Do you want to quit" not in screen_text(frozen)
        await pilot.press("enter", *"draft", "ctrl+c")
        await eventually(lambda: "ctrl+c again clears the draft" in screen_text(frozen))
        composer = frozen.screen.query_one(Composer)
        await pilot.press("s", "ctrl+c")  # it is another draft now
        assert composer.text == "drafts"
        await pilot.press("ctrl+c")
        await eventually(lambda: composer.text == "")
        await pilot.press("ctrl+c")
        await eventually(lambda: "ctrl+x interrupts a turn" in screen_text(frozen))
        await pilot.press("up")
        await eventually(lambda: composer.text == "drafts", "the draft among the prompts")


async def test_a_notice_is_wide_in_a_narrow_window(frozen: FrozenCockpit) -> None:
    frozen.add("alpha")
    async with frozen.run_test(size=(40, 24), notifications=True) as pilot:
        await eventually(lambda: "alpha" in screen_text(frozen))
        frozen.notify("The source is a local path, without requests.", timeout=600)
        await settled(pilot, 1)
        assert covered(frozen)[0].width > 30
