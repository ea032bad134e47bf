"""The top line in windows of any width."""

import pytest

from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text


@pytest.mark.parametrize(
    ("columns", "begins"),
    [
        (80, " quarterdeck  local ● online 2 ms "),
        (44, " ● online 2 ms "),
        (38, " ● online "),
        (34, " ● "),
    ],
)
async def test_the_connection_is_shortened_before_the_counts(
    frozen: FrozenCockpit, columns: int, begins: str
) -> None:
    frozen.add("asks", awaiting_input=True)
    frozen.add("works", processing=True)
    async with frozen.run_test(size=(columns, 24)) as pilot:
        await pilot.pause()
        row = screen_text(frozen).splitlines()[0]
        assert row.startswith(f"{begins} ▲ 1 needs you  ● 1 working")


async def test_a_click_on_how_many_need_the_user_goes_to_the_next_one(
    frozen: FrozenCockpit,
) -> None:
    frozen.add("works", processing=True)
    frozen.add("asks", awaiting_input=True)
    async with frozen.run_test(size=(100, 24)) as pilot:
        await eventually(lambda: "▲ 1 needs you" in screen_text(frozen))
        row = screen_text(frozen).splitlines()[0]
        await pilot.press("end")
        await pilot.click("StatusLine", offset=(row.index("needs"), 0))
        await eventually(lambda: "│ asks · " in screen_text(frozen), "the replica that asks")
        await eventually(lambda: type(frozen.focused).__name__ == "Composer", "its chat")
