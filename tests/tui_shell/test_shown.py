"""Reading the screen changes nothing on it."""

from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text


async def test_a_dialog_that_is_read_before_it_is_drawn_lets_the_list_show_through(
    frozen: FrozenCockpit,
) -> None:
    frozen.add("fix-login", "error")
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        await eventually(lambda: "Create a replica" in screen_text(frozen))
        await pilot.pause()
        frozen.screen.refresh()  # what was drawn is forgotten
        for _ in range(2):
            assert "quarterdeck" in screen_text(frozen).splitlines()[0]
        assert "quarterdeck" in frozen.export_screenshot()
