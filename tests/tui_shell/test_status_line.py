"""The top line in windows of any width."""

import pytest

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
