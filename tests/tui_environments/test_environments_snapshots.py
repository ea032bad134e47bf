"""How environments look in states that the walk through every screen does not come to."""

from typing import Any

import pytest

from quarterdeck.tui.actions import keyed
from tests.support.waiting import eventually
from tests.tui_environments.still import still_client
from tests.tui_shell.frozen import FrozenCockpit, screen_text
from tests.tui_shell.test_shell_snapshots import press

SMALL, MIDDLE, WIDE = (80, 24), (120, 40), (200, 60)

each_size = pytest.mark.parametrize(
    "size", [SMALL, MIDDLE, WIDE], ids=["80x24", "120x40", "200x60"]
)


@pytest.fixture
def still(frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch) -> FrozenCockpit:
    monkeypatch.setattr(type(frozen.app_state), "client", still_client())
    return frozen


def test_a_section_has_the_focus(snap_compare: Any, still: FrozenCockpit) -> None:
    wait = press("e", "down", "1", until="Write tests first")
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


@each_size
def test_a_new_environment_with_errors(
    snap_compare: Any, still: FrozenCockpit, size: tuple[int, int]
) -> None:
    wait = press("e", "n", "ctrl+s", until="Required.")
    assert snap_compare(still, terminal_size=size, run_before=wait)


def test_a_variable_is_changed(snap_compare: Any, still: FrozenCockpit) -> None:
    wait = press(
        "e", "down", "2", "down", "down", "enter", "end", *"_2", until="SHOP_DATABASE_URL_2"
    )
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


def test_a_paste_before_it_changes_anything(snap_compare: Any, still: FrozenCockpit) -> None:
    keys = ["e", "down", "2", "v", *"REGION=x", "ctrl+j", *"HOME=/", "ctrl+j", *"LOG_LEVEL=debug"]
    wait = press(*keys, until="1 invalid")
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


def test_unsaved_changes(snap_compare: Any, still: FrozenCockpit) -> None:
    wait = press("e", "n", *"shop", "escape", until="Unsaved changes")
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


async def test_a_narrow_window_cuts_nothing_that_matters(still: FrozenCockpit) -> None:
    async with still.run_test(size=(40, 24)) as pilot:
        for keys, shown in (
            (("e", "down", "3"), "…ig/pip/pip.conf"),
            (("7",), "warm hook)"),
            (("4", "m"), "Name in the list of skills."),
            ((), "ctrl+s instal…"),
            (("escape", "escape", "up", "7"), "{pool.switch} turns it on."),
            (("escape", "n"), "organization   ▼"),
        ):
            await pilot.press(*keys)
            await eventually(lambda shown=shown: keyed(shown) in screen_text(still), shown)
