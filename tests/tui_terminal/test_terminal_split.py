"""Two terminals of a replica shown together."""

from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.store.disk import ClientDisk
from quarterdeck.store.terminals import MOST_SPLITS, TerminalMemory, TerminalSplit
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.panes.terminal_split import BESIDE_COLUMNS
from quarterdeck.tui.terminal.view import TerminalView
from tests.support.waiting import eventually
from tests.tui_shell.conftest import fixed_clock_zone, installation, live
from tests.tui_shell.live import Desk, Installation

__all__ = ["fixed_clock_zone", "installation", "live"]

WIDE = BESIDE_COLUMNS + 40


def shown(desk: Desk) -> list[TerminalView]:
    """The terminals that are on the screen, from the top left."""
    views = [view for view in desk.app.screen.query(TerminalView) if view.display]
    return sorted(views, key=lambda view: (view.region.y, view.region.x))


async def see_prompts(desk: Desk, count: int) -> list[TerminalView]:
    def ready() -> bool:
        views = shown(desk)
        return len(views) == count and all("workspace$" in "".join(v.screen_text) for v in views)

    await eventually(ready, f"{count} prompts")
    return shown(desk)


async def opened(desk: Desk) -> TerminalPane:
    await desk.see("○ idle")
    await desk.press("t")
    await desk.see("[1 bash 1]", "workspace$")
    return desk.app.screen.query_one(TerminalPane)


async def test_a_second_terminal_below_in_a_small_window(live: Installation) -> None:
    await live.create("alpha")
    drafts = live.home / "split"
    async with live.cockpit((80, 24), drafts) as desk:
        pane = await opened(desk)
        await desk.press("ctrl+g", "o")
        await desk.see('Not split. " opens a second terminal.')
        await desk.press("ctrl+g", "percent_sign")
        first, second = await see_prompts(desk, 2)
        assert pane.current is second and second.has_focus
        assert first.size.width == second.size.width  # one below the other: no room beside
        assert abs(first.size.height - second.size.height) <= 1
        assert second.region.y == first.region.bottom + 1
        await desk.write("echo here-$((1+1))")
        await desk.press("enter")
        await eventually(lambda: "here-2" in "\n".join(second.screen_text))
        await desk.press("ctrl+g", "o")
        await eventually(lambda: first.has_focus, "the other one")
        await desk.see("[1 bash 1]")
        await desk.pilot.click(second)
        await eventually(lambda: second.has_focus, "the clicked one")
        await desk.see("[2 bash 2]")
        await desk.press("ctrl+g", "z")
        await eventually(lambda: second.size.width == 80, "the whole width")
        await desk.press("ctrl+g", "l")
        await eventually(lambda: desk.focus == "ReplicaListView")
    async with live.cockpit((80, 24), drafts) as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await see_prompts(desk, 2)
        await desk.press("ctrl+g", "c")
        await desk.see("[3 bash 3]")
        await see_prompts(desk, 1)
        await desk.press("ctrl+g", "1")
        await see_prompts(desk, 2)
        await desk.press("ctrl+g", "x")
        await desk.see("Close this terminal?")
        await desk.press("n")
        await see_prompts(desk, 2)
        await desk.press("ctrl+g", "x", "y")
        [left] = await see_prompts(desk, 1)
        await eventually(lambda: left.has_focus)
        assert "here-2" in "\n".join(left.screen_text)


@pytest.mark.long
async def test_beside_where_there_is_room_and_evenly(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit((WIDE, 40)) as desk:
        await opened(desk)
        await desk.press("ctrl+g", "percent_sign")
        first, second = await see_prompts(desk, 2)
        assert first.size.height == second.size.height
        assert abs(first.size.width - second.size.width) <= 1
        await eventually(lambda: second.content.state.cols == second.size.width, "the new size")
        second.type("stty size\r")
        size = f"{second.size.height} {second.size.width}"
        await eventually(lambda: size in "\n".join(second.screen_text), "the program's size")
        await desk.press("ctrl+g", "quotation_mark")
        await eventually(lambda: first.size.width == second.size.width, "one below the other")
        await desk.press("ctrl+g", "percent_sign")
        await eventually(lambda: first.size.height == second.size.height, "beside again")
        await desk.pilot.resize_terminal(80, 24)
        await eventually(lambda: first.size.width == second.size.width, "no room beside")
        await desk.pilot.resize_terminal(80, 10)
        await eventually(lambda: shown(desk) == [second], "room for one")
        await desk.pilot.resize_terminal(WIDE, 40)
        await eventually(lambda: len(shown(desk)) == 2, "both again")
        await desk.press("ctrl+g", "exclamation_mark")
        await eventually(lambda: shown(desk) == [second], "the split is undone")
        assert second.has_focus


@pytest.mark.long
async def test_a_split_is_an_action_of_the_palette(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk)
        await desk.press("ctrl+g", "ctrl+p")
        await desk.see("Search commands")
        await desk.write("second terminal below")
        await desk.press("enter")
        _, second = await see_prompts(desk, 2)
        await eventually(lambda: second.has_focus)


@pytest.mark.long
async def test_an_ended_terminal_is_replaced_in_its_place(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await opened(desk)
        await desk.press("ctrl+g", "quotation_mark")
        first, second = await see_prompts(desk, 2)
        await desk.press("ctrl+g", "o")
        await eventually(lambda: first.has_focus)
        first.type("exit\r")
        await desk.see("enter open another")
        await desk.press("enter")
        await eventually(lambda: first not in shown(desk))
        new, same = await see_prompts(desk, 2)
        assert same is second
        await eventually(lambda: new.has_focus)


def test_splits_are_kept_for_some_replicas(tmp_path: Path) -> None:
    disk = ClientDisk(tmp_path)
    memory = TerminalMemory(disk)
    split = TerminalSplit(first=UUID(int=1), second=UUID(int=2), beside=True)
    for number in range(MOST_SPLITS + 2):
        memory.keep_split(UUID(int=number), split)
    memory.keep_split(UUID(int=5), None)
    again = TerminalMemory(disk)
    assert again.split(UUID(int=MOST_SPLITS + 1)) == split
    assert again.split(UUID(int=0)) is None and again.split(UUID(int=5)) is None
    (tmp_path / "splits.json").write_text("[")
    assert TerminalMemory(disk).split(UUID(int=9)) is None
