"""How changes look, at the sizes people have."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from quarterdeck.store.changes_comments import lines_of
from quarterdeck.store.changes_review import Review
from quarterdeck.tui.themes import THEMES
from tests.tui_changes.material import EVERYTHING, Reading, changing
from tests.tui_shell.frozen import FrozenCockpit

SIZES = [(80, 24), (120, 40), (200, 60)]
each_size = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "200x60"])


def comment(review: Review, at: int, text: str, *, unfinished: bool = False) -> None:
    """A comment on a line of the first file."""
    change = (review.repositories[0].files or [])[0]
    lines = lines_of("shop", change.path, [change.numbered()[at]])
    assert lines is not None
    review.write(review.begin(lines), text, unfinished=unfinished)


def reading(app: FrozenCockpit, *keys: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Opens the changes, and types."""

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(app, pilot)
        await reader.open()
        await reader.press(*keys)
        await reader.see("[3 Changes]")

    return run


def reviewed(app: FrozenCockpit) -> None:
    review = changing(app, EVERYTHING)
    comment(review, 4, "Thirty **what**?\nSay so in the name.")
    comment(review, 5, "Or in hou", unfinished=True)


@each_size
def test_changes(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    reviewed(frozen)
    keys = ("right_square_bracket", "slash", *"return", "enter")
    assert snap_compare(frozen, terminal_size=size, run_before=reading(frozen, *keys))


@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_changes_in_other_colors(snap_compare: Any, frozen: FrozenCockpit, theme: str) -> None:
    reviewed(frozen)
    frozen.theme = THEMES[theme]
    assert snap_compare(frozen, terminal_size=(120, 40), run_before=reading(frozen))


@pytest.mark.parametrize("size", SIZES[1:], ids=["120x40", "200x60"])
def test_side_by_side(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    reviewed(frozen)
    assert snap_compare(frozen, terminal_size=size, run_before=reading(frozen, "u"))


@each_size
def test_writing_a_comment(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    changing(frozen, EVERYTHING)
    keys = ("right_square_bracket", "down", "v", "down", "c", *"Why", "ctrl+j", "?")
    assert snap_compare(frozen, terminal_size=size, run_before=reading(frozen, *keys))


def test_a_list_of_files(snap_compare: Any, frozen: FrozenCockpit) -> None:
    changing(frozen, EVERYTHING, EVERYTHING)
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=reading(frozen, "Z"))


def test_changes_of_a_sleeping_one(snap_compare: Any, frozen: FrozenCockpit) -> None:
    numbers = {"repository": "shop", "git_diff": {"added": 12, "removed": 3}}
    frozen.add("old-idea", "sleeping", repository_statuses=[numbers])
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=reading(frozen))
