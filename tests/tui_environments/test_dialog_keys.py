"""Dialogs give the keys on when they close."""

import pytest

from tests.support.waiting import eventually
from tests.tui_environments.still import still_client
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.live import Desk


@pytest.mark.parametrize("opens", ["a", "v"])
async def test_keys_behind_the_one_that_closes_a_dialog_are_for_the_page(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch, opens: str
) -> None:
    monkeypatch.setattr(type(frozen.app_state), "client", still_client())
    async with frozen.run_test(size=(80, 24)) as pilot:
        desk = Desk(frozen, pilot)
        await desk.see("No replicas yet")
        await desk.press("e", "down", "2")
        await desk.see("SHOP_DATABASE_URL")
        await desk.press(opens)
        await eventually(lambda: frozen.screen.is_modal, "the dialog")
        await desk.press("escape", "s")
        await desk.see("s3cret")
