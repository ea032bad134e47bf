"""What a row of the list shows in the width that it has."""

import pytest

from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text

STATES = ("active", "preparing", "sleeping", "archived", "error")


def side(app: FrozenCockpit) -> list[str]:
    """The rows of the list, as they are on the screen."""
    region = app.screen.listing.region
    lines = screen_text(app).splitlines()[region.y : region.bottom]
    return [line[: region.right].rstrip() for line in lines]


@pytest.mark.parametrize("others", [0, 40], ids=["short", "scrolled"])
async def test_a_name_has_sixteen_columns_in_the_smallest_window(
    frozen: FrozenCockpit, others: int
) -> None:
    for status in STATES:
        frozen.add(f"{status[:3]}-login-of-sho", status)
    frozen.add("asking-of-shops-", awaiting_input=True)
    for number in range(others):
        frozen.add(f"other-{number}")
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "asking-of" in screen_text(frozen), "the list")
        await pilot.press("end", "home")
        shown = {row[3:19] for row in side(frozen)}
        for keys in ("pagedown", "end"):
            await pilot.press(keys)
            shown |= {row[3:19] for row in side(frozen)}
    assert {f"{status[:3]}-login-of-sho" for status in STATES} <= shown, shown
    assert "asking-of-shops-" in shown


async def test_the_state_is_in_words_where_the_name_leaves_room(frozen: FrozenCockpit) -> None:
    for name in ("spike", "fourteen-chars", "seventeen-letters"):
        frozen.add(name, processing=True)
    async with frozen.run_test(size=(80, 24)):
        await eventually(lambda: "spike" in screen_text(frozen), "the list")
        assert side(frozen)[:3] == [
            " ● spike          working",
            " ● fourteen-chars working",
            " ● seventeen-letters",
        ]


@pytest.mark.parametrize("width", [80, 100, 120])
async def test_states_are_in_one_column_whatever_the_names(
    frozen: FrozenCockpit, width: int
) -> None:
    for length in (1, 5, 11, 12, 13, 15, 16, 17, 30):
        frozen.add("n" * length)
        frozen.add("w" * length, processing=True)
    async with frozen.run_test(size=(width, 24)):
        await eventually(lambda: "nnnnn" in screen_text(frozen), "the list")
        rows = side(frozen)
    for word in ("idle", "working"):
        assert len({row.index(word) for row in rows if word in row}) == 1, rows
