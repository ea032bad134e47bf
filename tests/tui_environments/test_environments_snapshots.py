"""How environments look, at the sizes people have."""

from typing import Any

import pytest

from tests.tui_environments.shelf import still_client
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.test_shell_snapshots import press

SMALL, MIDDLE, WIDE = (80, 24), (120, 40), (200, 60)

each_size = pytest.mark.parametrize(
    "size", [SMALL, MIDDLE, WIDE], ids=["80x24", "120x40", "200x60"]
)

SECTIONS = {
    "general": ("1", "Write tests first"),
    "variables": ("2", "SHOP_DATABASE_URL"),
    "files": ("3", "pip.conf"),
    "skills": ("4", "Review"),
    "mcps": ("5", "tickets"),
    "hooks": ("6", "make deps"),
    "pool": ("7", "code 2)."),
}


@pytest.fixture
def still(frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch) -> FrozenCockpit:
    monkeypatch.setattr(type(frozen.deck), "client", still_client())
    return frozen


@each_size
@pytest.mark.parametrize("section", ["general", "variables"])
def test_a_section(
    snap_compare: Any, still: FrozenCockpit, size: tuple[int, int], section: str
) -> None:
    key, seen = SECTIONS[section]
    wait = press("e", "down", key, until=seen)
    assert snap_compare(still, terminal_size=size, run_before=wait)


@pytest.mark.parametrize("section", ["files", "skills", "mcps", "hooks", "pool"])
def test_a_section_in_a_small_window(snap_compare: Any, still: FrozenCockpit, section: str) -> None:
    key, seen = SECTIONS[section]
    wait = press("e", "down", key, until=seen)
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


@each_size
def test_a_new_environment_with_errors(
    snap_compare: Any, still: FrozenCockpit, size: tuple[int, int]
) -> None:
    wait = press("e", "n", "ctrl+s", until="It is needed.")
    assert snap_compare(still, terminal_size=size, run_before=wait)


def test_a_variable_is_changed(snap_compare: Any, still: FrozenCockpit) -> None:
    wait = press(
        "e", "down", "2", "down", "down", "enter", "end", *"_2", until="SHOP_DATABASE_URL_2"
    )
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


def test_a_paste_before_it_changes_anything(snap_compare: Any, still: FrozenCockpit) -> None:
    keys = ["e", "down", "2", "v", *"REGION=x", "ctrl+j", *"HOME=/", "ctrl+j", *"LOG_LEVEL=debug"]
    wait = press(*keys, until="1 cannot be taken")
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


def test_a_hook(snap_compare: Any, still: FrozenCockpit) -> None:
    wait = press("e", "down", "6", "enter", until="version 3")
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)


def test_unsaved_changes(snap_compare: Any, still: FrozenCockpit) -> None:
    wait = press("e", "n", *"shop", "escape", until="Not saved yet")
    assert snap_compare(still, terminal_size=SMALL, run_before=wait)
