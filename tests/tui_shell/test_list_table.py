"""The list as a table, sorted, grouped, with pinned replicas."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from quarterdeck.store.list_view import SortKey
from quarterdeck.store.signals import ListChanged
from quarterdeck.tui.widgets import replica_list
from quarterdeck.tui.widgets.replica_rows import age, age_lasts, fitting_columns
from tests.support.waiting import eventually
from tests.tui_shell.frozen import START, FrozenCockpit, screen_text

NOW = START + timedelta(hours=3)
SHOP, WEB = "shop", "web"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_list, "utc_now", lambda: NOW)


def in_repository(name: str, branch: str, added: int = 0, ahead: int = 0) -> dict[str, Any]:
    diff = {"added": added, "removed": 1}
    status = {"repository": name, "branch": branch, "ahead": ahead, "git_diff": diff}
    return {
        "repositories": [{"id": UUID(int=3), "name": name, "url": f"https://host/{name}"}],
        "repository_statuses": [status],
    }


def fill(app: FrozenCockpit) -> None:
    app.add("docs", **in_repository(WEB, "main", 3))
    app.add("flaky", processing=True, **in_repository(SHOP, "qd/flaky", 40, ahead=2))
    pull = {"repository": SHOP, "number": 341, "url": "https://host/341"}
    app.add("bump", pull_requests=[pull], **in_repository(SHOP, "qd/bump", 7))
    app.add("asks", awaiting_input=True, **in_repository(WEB, "qd/asks", 12))


def lines(app: FrozenCockpit) -> list[str]:
    """The list, as it is on the screen."""
    region = app.screen.listing.region
    return [
        line[region.x : region.right].rstrip()
        for line in screen_text(app).splitlines()[region.y : region.bottom]
    ]


def names(app: FrozenCockpit) -> list[str]:
    return [line[3:].split()[0] for line in lines(app)[1:] if line]


async def in_table(app: FrozenCockpit, pilot: Any) -> None:
    await eventually(lambda: "asks" in screen_text(app), "the list")
    await pilot.press("L")
    await eventually(lambda: "NAME" in screen_text(app), "the table")
    await pilot.pause()


async def test_the_table_has_the_whole_width(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(130, 24)) as pilot:
        await in_table(frozen, pilot)
        head, asks, flaky, docs, bump = lines(frozen)[:5]
        assert head.split() == [
            *("NAME", "STATE▾", "AGENT", "REPO@BRANCH", "CHANGES", "AHEAD", "PR", "CTX", "AGE")
        ]
        assert asks.split() == ["▲", "asks", "asking", "builtin", "web@qd/asks", "+12", "-1", "3h"]
        assert flaky.split()[-4:] == ["+40", "-1", "↑2", "3h"]
        assert docs.split()[1:5] == ["docs", "idle", "builtin", "web@main"]
        assert "#341" in bump
        assert not frozen.screen.query_one("#main").display
        await pilot.press("L")
        await eventually(lambda: "NAME" not in screen_text(frozen), "the sidebar")
        await eventually(lambda: "[1 Chat]" in screen_text(frozen), "the replica beside it")


async def test_it_gives_way_to_a_replica_and_is_there_again(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(100, 24)) as pilot:
        await in_table(frozen, pilot)
        assert frozen.app_state.on_screen is None
        await pilot.press("down", "enter")
        await eventually(lambda: "[1 Chat]" in screen_text(frozen), "the replica")
        await eventually(lambda: "NAME" not in screen_text(frozen), "the sidebar")
        assert frozen.app_state.replicas[frozen.app_state.on_screen].name == "flaky"
        await pilot.press("escape", "escape")
        await eventually(lambda: "NAME" in screen_text(frozen), "the table again")
        # What happens in a replica that the table covers is not seen.
        assert frozen.app_state.on_screen is None
        assert frozen.screen.chosen.name == "flaky"


async def test_it_is_remembered(tmp_path: Path) -> None:
    app = FrozenCockpit(tmp_path)
    fill(app)
    async with app.run_test(size=(100, 24)) as pilot:
        await in_table(app, pilot)
        await pilot.press("greater_than_sign", "b")
        await eventually(lambda: "web  2" in screen_text(app), "the groups")
        text = lines(app)
    app = FrozenCockpit(tmp_path)
    fill(app)
    async with app.run_test(size=(100, 24)):
        await eventually(lambda: "asks" in screen_text(app), "the list")
        assert lines(app) == text
        assert "Chat]" not in screen_text(app)


@pytest.mark.parametrize("width", range(10, 200))
def test_columns_are_left_out_where_they_have_no_room(width: int) -> None:
    columns = fitting_columns(width)
    keys = [column.key for column, _ in columns]
    assert keys[0] is SortKey.NAME and len(set(keys)) == len(keys)
    if width >= 20:
        assert 3 + sum(room + 2 for _, room in columns) - 2 <= width
        assert columns[0][1] >= 16
    wider = {column.key for column, _ in fitting_columns(width + 30)}
    assert len(wider) >= len(keys)


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (50, "NAME STATE▾ CHANGES AGE"),
        (80, "NAME STATE▾ AGENT CHANGES PR CTX AGE"),
        (100, "NAME STATE▾ AGENT REPO@BRANCH CHANGES PR CTX AGE"),
    ],
)
async def test_the_most_telling_columns_stay(frozen: FrozenCockpit, width: int, left: str) -> None:
    fill(frozen)
    async with frozen.run_test(size=(width, 24)) as pilot:
        await in_table(frozen, pilot)
        assert lines(frozen)[0].split() == left.split()


async def test_it_is_sorted_by_a_column(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(120, 24)) as pilot:
        await in_table(frozen, pilot)
        await pilot.press("greater_than_sign", "greater_than_sign", "greater_than_sign")
        assert "CHANGES▾" in lines(frozen)[0]
        assert names(frozen) == ["flaky", "asks", "bump", "docs"]
        await pilot.press("r")
        assert "CHANGES▴" in lines(frozen)[0]
        assert names(frozen) == ["docs", "bump", "asks", "flaky"]
        assert frozen.screen.chosen.name == "asks"  # where the cursor was before
        await pilot.press("less_than_sign")
        assert "REPO@BRANCH▾" in lines(frozen)[0]
        assert names(frozen) == ["bump", "flaky", "docs", "asks"]


async def test_the_sidebar_says_its_order(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "asks" in screen_text(frozen), "the list")
        await pilot.press("less_than_sign")
        await eventually(lambda: "by name" in screen_text(frozen), "the order")
        await pilot.press("greater_than_sign")
        await eventually(lambda: "by name" not in screen_text(frozen), "the usual order")


@pytest.mark.long
async def test_a_click_on_a_title_sorts_and_another_one_turns_the_order(
    frozen: FrozenCockpit,
) -> None:
    fill(frozen)
    async with frozen.run_test(size=(120, 24)) as pilot:
        await in_table(frozen, pilot)
        at = lines(frozen)[0].index("CHANGES")
        await pilot.click("ReplicaListView", offset=(at + 1, 0))
        await eventually(lambda: "CHANGES▾" in lines(frozen)[0], "the order")
        assert names(frozen)[0] == "flaky"
        await pilot.click("ReplicaListView", offset=(at + 1, 0))
        await eventually(lambda: "CHANGES▴" in lines(frozen)[0], "the other way round")
        await pilot.click("ReplicaListView", offset=(5, 3))
        await eventually(lambda: frozen.screen.listing.cursor == 2, "the row that was clicked")


async def test_the_order_stays_while_the_cursor_is_in_it(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(100, 24)) as pilot:
        await in_table(frozen, pilot)
        before = names(frozen)
        for state in frozen.app_state.replicas.values():
            for chat in state.chats.values():
                chat.record.awaiting_input = state.name == "bump"
        frozen.app_state.publish(ListChanged())
        await eventually(lambda: any("▲ bump" in line for line in lines(frozen)), "its state")
        assert names(frozen) == before
        await pilot.press("S")
        assert names(frozen)[0] == "bump"


@pytest.mark.long
async def test_a_pinned_replica_is_first_and_stays_pinned(tmp_path: Path) -> None:
    app = FrozenCockpit(tmp_path)
    fill(app)
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "asks" in screen_text(app), "the list")
        await pilot.press("end", "p")
        assert lines(app)[0].startswith("◆○ bump") and app.screen.chosen.name == "bump"
        await pilot.press("down", "space", "space", "p")
        assert [line[:6] for line in lines(app)[:3]] == ["*▲ ask", "*● fla", "◆○ bum"]
    app = FrozenCockpit(tmp_path)
    fill(app)
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "◆▲ asks" in screen_text(app), "the pinned ones")
        await pilot.press("p")
        await eventually(lambda: "◆▲ asks" not in screen_text(app), "no pin")


@pytest.mark.long
async def test_groups_have_heads_that_the_cursor_skips(frozen: FrozenCockpit) -> None:
    fill(frozen)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "asks" in screen_text(frozen), "the list")
        await pilot.press("b")
        shown = [line.split()[:2] for line in lines(frozen)[:6]]
        assert shown == [
            *(["web", "2"], ["▲", "asks"], ["○", "docs"]),
            *(["shop", "2"], ["●", "flaky"], ["○", "bump"]),
        ]
        assert lines(frozen)[0] == " web  2  ▲ 1"
        await pilot.press("home", "down", "down")
        assert frozen.screen.chosen.name == "flaky"
        await pilot.click("ReplicaListView", offset=(3, 3))
        await pilot.pause()
        assert frozen.screen.chosen.name == "flaky"  # a head is no replica
        await pilot.click("ReplicaListView", offset=(3, 5))
        await eventually(lambda: frozen.screen.chosen.name == "bump", "the clicked one")
        new = frozen.add("late", awaiting_input=True, **in_repository(WEB, "main"))
        frozen.app_state.publish(ListChanged())
        await eventually(lambda: "late" in screen_text(frozen), "the new one")
        assert lines(frozen)[3].split()[1] == "late"  # the last of its group
        assert frozen.screen.chosen.name == "bump"
        frozen.app_state.remove(new.id)
        await pilot.press("b", "b", "b")
        await eventually(lambda: "web  2" not in screen_text(frozen), "no groups")


async def test_the_head_of_a_group_is_scrolled_to_with_its_first_one(
    frozen: FrozenCockpit,
) -> None:
    for number in range(40):
        frozen.add(f"one-{number}", **in_repository(f"repo-{number % 8}", "main"))
    async with frozen.run_test(size=(100, 20)) as pilot:
        await eventually(lambda: "one-0" in screen_text(frozen), "the list")
        await pilot.press("b", "L", "end")
        await eventually(lambda: "one-39" in screen_text(frozen), "the end")
        await pilot.press(*["up"] * 4)
        await eventually(lambda: "repo-7  5" in screen_text(frozen), "the head")
        await pilot.press("home")
        await eventually(lambda: lines(frozen)[1].split() == ["repo-0", "5"], "the first head")


@pytest.mark.long
async def test_only_the_rows_that_are_seen_are_made(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    for module, name in ((replica_list, "sidebar_line"), (replica_list, "table_line")):
        make = getattr(module, name)

        def count(state: Any, *rest: Any, make: Any = make, **more: Any) -> Any:
            made.append(state.name)
            return make(state, *rest, **more)

        monkeypatch.setattr(module, name, count)
    for number in range(500):
        frozen.add(f"one-{number}")
    async with frozen.run_test(size=(100, 30)) as pilot:
        await eventually(lambda: "one-0" in screen_text(frozen), "the list")
        for keys in ((), ("L",), ("b",), ("end",)):
            await pilot.press(*keys)
            await pilot.pause()
            made.clear()
            frozen.screen._show_list()
            assert 0 < len(made) <= 30, keys


@pytest.mark.parametrize(
    ("past", "shown", "seconds"),
    [
        (timedelta(seconds=-5), "now", 60),
        (timedelta(seconds=59), "now", 1),
        (timedelta(seconds=60), "1m", 60),
        (timedelta(minutes=59, seconds=50), "59m", 10),
        (timedelta(hours=1), "1h", 3600),
        (timedelta(hours=23, minutes=59), "23h", 60),
        (timedelta(days=12, hours=12), "12d", 43200),
    ],
)
def test_an_age_is_told_as_long_as_it_is_true(past: timedelta, shown: str, seconds: float) -> None:
    assert age(NOW - past, NOW) == shown
    assert age_lasts(NOW - past, NOW) == seconds


async def test_an_age_changes_on_the_screen_when_its_time_has_come(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    now: list[datetime] = [NOW]
    monkeypatch.setattr(replica_list, "utc_now", lambda: now[0])
    frozen.add("asks", last_activity_at=NOW - timedelta(seconds=59.9))
    async with frozen.run_test(size=(80, 24)) as pilot:
        await in_table(frozen, pilot)
        assert lines(frozen)[1].endswith("now")
        now[0] += timedelta(seconds=1)
        await eventually(lambda: lines(frozen)[1].endswith("1m"), "the age")
        await pilot.press("L")
        assert frozen.screen.listing._age_timer is None
