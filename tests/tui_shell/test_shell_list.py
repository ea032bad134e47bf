"""The list of replicas: narrowed, marked, and many acted on at once."""

from datetime import timedelta
from pathlib import Path

import pytest
from textual import events
from textual.dom import DOMNode

from quarterdeck.store.signals import ListChanged
from quarterdeck.tui.panes.replica import ReplicaPane
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.text import wrapped
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.lines import FilterLine
from quarterdeck.tui.widgets.replica_list import ListSide
from quarterdeck.tui.widgets.status_line import OpeningScreen
from quarterdeck.wire.environments import GLOBAL
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text
from tests.tui_shell.live import Installation


def words(app: FrozenCockpit) -> str:
    line = app.screen.query_one(FilterLine)
    return str(line.query_one("Static").render()) if line.has_class("shown") else ""


async def test_words_narrow_the_list_while_they_are_typed(frozen: FrozenCockpit) -> None:
    for name in ("fix-login", "add-login", "flaky"):
        frozen.add(name)
    frozen.add("asleep", "sleeping")
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"log")
        assert "fix-login" in screen_text(frozen) and "flaky" not in screen_text(frozen)
        assert words(frozen) == "2 of 4"
        await pilot.press("enter", "j")
        assert type(frozen.focused).__name__ == "ReplicaListView"
        assert frozen.screen.listing.selected == frozen.services.ordered()[1].id
        await pilot.press("slash", *" zzz")
        assert "No matches" in screen_text(frozen)
        await pilot.press("escape")
        assert "flaky" in screen_text(frozen) and words(frozen) == ""
        await pilot.press("slash", *"is:sleeping", "down")
        assert "asleep" in screen_text(frozen) and "flaky" not in screen_text(frozen)
        await pilot.press("escape")
        assert "flaky" in screen_text(frozen)


async def test_the_list_stays_beside_the_words_in_a_narrow_window(frozen: FrozenCockpit) -> None:
    frozen.add("fix-login")
    async with frozen.run_test(size=(50, 20)) as pilot:
        await pilot.press("slash", *"fix")
        assert "fix-login" in screen_text(frozen)


async def test_a_window_that_gets_wider_shows_the_replica_under_the_cursor(
    frozen: FrozenCockpit,
) -> None:
    frozen.add("one")
    frozen.add("two")
    async with frozen.run_test(size=(50, 20)) as pilot:
        await pilot.press("down")
        assert not frozen.screen.query(ReplicaPane)
        await pilot.resize_terminal(100, 30)
        await eventually(lambda: shown(frozen) == "two")
        await pilot.resize_terminal(50, 20)
        await pilot.press("up")
        await pilot.resize_terminal(100, 30)
        await eventually(lambda: shown(frozen) == "one")


def shown(cockpit: FrozenCockpit) -> str:
    """The name of the replica that is shown next to the list."""
    panes = cockpit.screen.query(ReplicaPane)
    return cockpit.app_state.replicas[panes.first().replica_id].name if panes else ""


@pytest.mark.long
async def test_the_list_is_made_wider_and_stays_so(frozen: FrozenCockpit) -> None:
    frozen.add("a-name-that-is-longer-than-the-list")
    async with frozen.run_test(size=(100, 24)) as pilot:
        await eventually(lambda: frozen.screen.query(ListSide))
        side = frozen.screen.query_one(ListSide)
        await eventually(lambda: side.outer_size.width == 26)
        await pilot.press("plus", "plus")
        await eventually(lambda: side.outer_size.width == 34)
        await pilot.press(*["plus"] * 5)
        await eventually(lambda: side.outer_size.width == 50)  # half of the screen
        await pilot.press("minus")
        await eventually(lambda: side.outer_size.width == 46)
        await pilot.resize_terminal(50, 24)
        await eventually(lambda: side.outer_size.width == 50)  # the replica has no room
        await pilot.resize_terminal(130, 24)
        await eventually(lambda: side.outer_size.width == 54)
        assert frozen.services.current.disk.list_view().wider == 20
        await pilot.press(*["minus"] * 6)
        await eventually(lambda: side.outer_size.width == 34)


async def test_marks_are_shown_counted_and_taken_back(frozen: FrozenCockpit) -> None:
    for name in ("one", "two", "three"):
        frozen.add(name)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("space", "space")
        assert words(frozen) == "2 marked"
        assert "*○ one" in screen_text(frozen) and " ○ three" in screen_text(frozen)
        await pilot.press("g", "space")
        assert words(frozen) == "1 marked"
        await pilot.press("asterisk")
        assert words(frozen) == "3 marked"
        await pilot.press("asterisk")
        assert words(frozen) == ""
        await pilot.press("space", "escape")
        assert words(frozen) == "" and "*" not in screen_text(frozen)


@pytest.mark.long
async def test_marked_replicas_that_are_not_shown_are_named_before_they_are_deleted(
    frozen: FrozenCockpit,
) -> None:
    for name in ("one", "two", "three"):
        frozen.add(name)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("space", "space", "slash", *"three", "enter", "d")
        await pilot.pause()
        text = " ".join(screen_text(frozen).split())
        assert "Delete 2 replicas?" in text and "deletes one, two: sandboxes" in text


@pytest.mark.long
async def test_a_command_is_for_all_that_are_marked(live: Installation) -> None:
    names = ("alpha", "beta", "gamma")
    for name in names:
        await live.create(name)
    async with live.cockpit() as desk:
        await desk.see(*names)
        await eventually(lambda: all(desk.replica(name).active for name in names))
        await desk.press("slash", *"a", "enter", "asterisk", "slash", "escape")
        await desk.press("slash", *"gamma", "enter", "space", "escape")
        await desk.press("asterisk", "s")
        await desk.see("3 put to sleep")
        await eventually(lambda: all(desk.replica(name).status == "sleeping" for name in names))
        assert "marked" not in desk.text
        await desk.press("A")
        chosen = desk.app.screen.chosen
        await eventually(lambda: desk.replica(chosen.name).status == "archived", "the archive")
        await desk.press("w")
        await eventually(lambda: desk.replica(chosen.name).active, "the restored replica")
        await desk.press("asterisk", "d", "y")
        await desk.see("No replicas yet")


PLAN = "/plan ```sh\necho planned\n```"


@pytest.mark.long
async def test_a_plan_to_review_is_told_until_it_is_accepted(
    live: Installation, tmp_path: Path
) -> None:
    planned = await live.create("planned", PLAN)
    await live.create("other")
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("▲ planned", "plan", "▲ 1 needs you")
        assert desk.app.services.ordered()[0].name == "planned"
        await desk.press("slash", *"is:plan")
        await desk.see("1 of 2")
    # The service that starts again knows it, and one that sleeps waits all the same.
    live.kill()
    live.start()
    await live.ready()
    async with live.client() as client:
        await client.replicas.sleep(planned.id)
    async with live.cockpit(drafts=tmp_path) as desk:
        await desk.see("▲ planned", "▲ 1 needs you")
        assert desk.replica("planned").status == "sleeping"
        await eventually(lambda: desk.replica("other").active, "the other one")
        desk.app.screen.listing.select(planned.id)
        await desk.press("enter")
        await desk.see("Plan ready")
        await desk.press("alt+a")
        await desk.see("Go ahead and implement it.")
        await desk.miss("▲ planned")
        await desk.miss("needs you")


@pytest.mark.long
async def test_a_running_turn_has_its_beginning_in_a_cockpit_opened_anew(
    live: Installation,
) -> None:
    made = await live.create("alpha", "```sh\nsleep 300\n```")
    async with live.cockpit() as desk:
        await desk.see("● working since")
        (first,) = desk.replica("alpha").chats.values()
        begun = first.turn_started_at
    assert begun is not None
    async with live.cockpit() as desk:
        await desk.see("● working since")
        (again,) = desk.replica("alpha").chats.values()
        assert again.turn_started_at is not None
        assert abs(again.turn_started_at - begun) < timedelta(seconds=2)
        assert desk.app.app_state.on_screen == made.id


def keys_told(app: FrozenCockpit) -> str:
    return screen_text(app).splitlines()[-1]


@pytest.mark.long
async def test_keys_are_offered_where_they_do_something(frozen: FrozenCockpit) -> None:
    states = ("active", "error", "preparing", "sleeping", "archived")
    for status in states:
        frozen.add(status, status)
    async with frozen.run_test(size=(120, 24)) as pilot:
        await pilot.pause()
        told: dict[str, tuple[bool, bool]] = {}
        for state in frozen.services.ordered():
            frozen.screen.listing.select(state.id)
            await pilot.pause()
            words = keys_told(frozen)
            told[state.name] = ("s sleep" in words, "w wake" in words)
        assert told == {
            "active": (True, False),
            "error": (False, True),
            "preparing": (False, False),
            "sleeping": (False, True),
            "archived": (False, True),
        }
        await pilot.press("asterisk")
        await pilot.pause()
        assert "s sleep" in keys_told(frozen) and "w wake" in keys_told(frozen)


async def test_offered_keys_follow_the_state(frozen: FrozenCockpit) -> None:
    state = frozen.add("one")
    async with frozen.run_test(size=(120, 24)) as pilot:
        await pilot.pause()
        assert "s sleep" in keys_told(frozen) and "w wake" not in keys_told(frozen)
        state.record.status = "sleeping"
        frozen.app_state.publish(ListChanged())
        await eventually(lambda: "w wake" in keys_told(frozen), "the key that wakes")
        assert "s sleep" not in keys_told(frozen)


@pytest.mark.long
async def test_a_plain_word_is_also_a_state(frozen: FrozenCockpit) -> None:
    frozen.add("flaky")
    frozen.add("old-idea", "sleeping")
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"sleeping")
        assert "old-idea" in screen_text(frozen) and "flaky" not in screen_text(frozen)
        assert words(frozen) == "1 of 2"


@pytest.mark.long
async def test_an_environment_is_found_by_its_name(live: Installation) -> None:
    await live.create("alpha")
    async with live.client() as client:
        name = (await client.environments.get(GLOBAL)).name
    async with live.cockpit() as desk:
        await desk.see("alpha")
        await desk.press("slash", *f"env:{name.lower()}")
        await desk.see("1 of 1")
        await desk.press(*"x")
        await desk.see("0 of 1")


@pytest.mark.long
async def test_groups_of_environments_have_their_names(live: Installation) -> None:
    await live.create("alpha")
    async with live.client() as client:
        name = (await client.environments.get(GLOBAL)).name
    async with live.cockpit() as desk:
        await desk.see("alpha")
        await desk.press("b", "b")
        await desk.see(f" {name}  1")


@pytest.mark.long
async def test_tabs_that_have_no_room_show_their_keys(frozen: FrozenCockpit) -> None:
    frozen.add("one")
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await pilot.pause()
        assert "1 Chat  2 Terminal [3 Changes] 4 Files  5  6  7" in screen_text(frozen)
        await pilot.press("7")
        await pilot.pause()
        assert "4 Files  5  6 [7 Exec]" in screen_text(frozen)


@pytest.mark.long
async def test_keys_behind_the_words_are_for_the_list(frozen: FrozenCockpit) -> None:
    for name in ("fix-login", "flaky"):
        frozen.add(name)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key in ("slash", *"flaky", "enter", "3"):
            frozen.post_message(events.Key(key, key if len(key) == 1 else None))
        await eventually(lambda: "[3 Changes]" in screen_text(frozen), "the tab")
        assert frozen.screen.query_one(FilterLine).typed == "flaky"


@pytest.mark.long
async def test_who_writes_keeps_the_pane_when_the_list_empties(frozen: FrozenCockpit) -> None:
    state = frozen.add("fix-login", awaiting_input=True)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"is:asking", "enter", "enter")
        await eventually(lambda: type(frozen.focused).__name__ == "Composer", "the composer")
        for chat in state.chats.values():
            chat.record.awaiting_input = False
        frozen.app_state.publish(ListChanged())
        await eventually(lambda: "No matches" in screen_text(frozen), "an empty list")
        assert type(frozen.focused).__name__ == "Composer"


@pytest.mark.long
@pytest.mark.parametrize("size", [(120, 40), (80, 24), (50, 20)])
async def test_hints_in_empty_places_are_whole(
    frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    frozen.add("fix-login")
    async with frozen.run_test(size=size) as pilot:
        await eventually(lambda: "fix-login" in screen_text(frozen))
        await pilot.press("7")
        await eventually(lambda: "Runs one command" in screen_text(frozen))
        shown = " ".join(row.partition("│")[2] or row for row in screen_text(frozen).splitlines())
        shown = " ".join(shown.replace("│", " ").split())
        assert "Use the terminal (2) for anything longer." in shown, screen_text(frozen)


@pytest.mark.parametrize(
    ("width", "lines"),
    [(40, ["one two three", "", "four"]), (8, ["one two", "three", "", "four"]), (3, 0)],
)
def test_text_is_wrapped_and_keeps_its_lines(width: int, lines: list[str] | int) -> None:
    made = wrapped("one two three\n\nfour", width)
    assert made == lines if isinstance(lines, list) else "".join(made) == "onetwothreefour"


def rows(app: FrozenCockpit) -> list[str]:
    """The names of the list from its top."""
    return [state.name for state in app.screen.listing._shown]


def asks(app: FrozenCockpit, name: str) -> None:
    """The replica asks from now on."""
    state = next(one for one in app.app_state.replicas.values() if one.name == name)
    state.detailed = True
    for chat in state.chats.values():
        chat.record.awaiting_input = True
    app.app_state.publish(ListChanged())


@pytest.mark.long
async def test_the_order_is_kept_while_the_cursor_is_in_the_list(frozen: FrozenCockpit) -> None:
    for name in ("one", "two", "three"):
        frozen.add(name)
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "one" in screen_text(frozen), "the list")
        listing = frozen.screen.listing
        await pilot.press("j")
        asks(frozen, "three")
        frozen.add("four", awaiting_input=True)
        await eventually(lambda: "▲ three" in screen_text(frozen), "the state in its place")
        assert rows(frozen) == ["one", "two", "three", "four"] and listing.cursor == 1
        assert "S sort" in screen_text(frozen)
        await pilot.press("S")
        assert rows(frozen) == ["three", "four", "one", "two"] and listing.cursor == 3
        assert "S sort" not in screen_text(frozen)
        asks(frozen, "one")
        await pilot.pause()
        assert rows(frozen) == ["three", "four", "one", "two"]
        await pilot.press("enter")  # the focus leaves the list
        await eventually(lambda: rows(frozen) == ["one", "three", "four", "two"], "sorted")
        asks(frozen, "two")
        await eventually(lambda: rows(frozen)[1] == "two", "sorted while the focus is elsewhere")


async def test_the_cursor_starts_on_the_first_that_needs_the_user(frozen: FrozenCockpit) -> None:
    for name in ("one", "two", "three", "four"):
        frozen.add(name).detailed = False
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: "one" in screen_text(frozen), "the list")
        listing = frozen.screen.listing
        asks(frozen, "three")  # known a moment after the list itself
        await eventually(lambda: rows(frozen)[0] == "three" and listing.cursor == 0, "the cursor")
        asks(frozen, "one")
        await eventually(lambda: rows(frozen)[0] == "one", "another one")
        assert listing.cursor == 1  # it needs the user as well: the cursor stays
        for state in frozen.app_state.replicas.values():
            state.detailed = True
        frozen.app_state.publish(ListChanged())
        await pilot.pause()
        asks(frozen, "four")  # all are read: this is news, and no reason to move the cursor
        await eventually(lambda: "▲ four" in screen_text(frozen), "the state in its place")
        assert rows(frozen) == ["one", "three", "two", "four"] and listing.cursor == 1


async def test_a_window_of_any_width_is_styled_when_its_parts_are_mounted_only(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    styled: list[DOMNode] = []

    def count(self: DOMNode, animate: bool = True) -> None:
        styled.append(self)

    for screen in (OpeningScreen, MainScreen):
        monkeypatch.setattr(screen, "update_node_styles", count)
    frozen.add("fix-login")
    async with frozen.run_test(size=(120, 40)):
        await eventually(lambda: "fix-login" in screen_text(frozen), "the list")
        assert frozen.screen.has_class("-wide")
        assert not styled, "neither when it was shown nor for the class of its width"


async def test_what_is_hidden_at_first_is_not_mounted(frozen: FrozenCockpit) -> None:
    frozen.add("fix-login")
    async with frozen.run_test(size=(120, 40)):
        await eventually(lambda: bool(frozen.screen.query(Composer)), "the chat")
        for hidden in ("#banner", "#unisolated", "#goal", "StateNote", "FilterLine Input"):
            assert not frozen.screen.query(hidden), hidden


async def test_m_goes_to_the_composer_whatever_tab_is_shown(frozen: FrozenCockpit) -> None:
    frozen.add("alpha").environment_read = True
    async with frozen.run_test(size=(120, 30)) as pilot:
        await pilot.press("7")
        await eventually(lambda: type(frozen.focused).__name__ == "ExecPrompt", "the prompt")
        await pilot.press("escape", "m")
        await eventually(lambda: type(frozen.focused).__name__ == "Composer", "the composer")
        await pilot.press(*"hi")
        assert frozen.screen.query_one(Composer).text == "hi"


async def test_lines_of_the_first_start_that_name_a_key_are_clicked(frozen: FrozenCockpit) -> None:
    async with frozen.run_test(size=(100, 30)) as pilot:
        for words, opened in (
            ("Create replica", "New replica"),
            ("Press n to create", "New replica"),
            ("Keys of this screen", "Create a replica"),
        ):
            await eventually(lambda words=words: words in screen_text(frozen))
            lines = screen_text(frozen).splitlines()
            y = next(n for n, line in enumerate(lines) if words in line)
            await pilot.click(offset=(lines[y].index(words), y))
            await eventually(lambda opened=opened: opened in screen_text(frozen))
            await pilot.press("escape")
            await eventually(lambda: isinstance(frozen.screen, MainScreen))
        await pilot.click(offset=(lines[y].index(words), y - 7))  # a line without a key
        await pilot.pause()
        assert isinstance(frozen.screen, MainScreen)


async def test_the_list_is_hidden_while_a_replica_has_the_focus(frozen: FrozenCockpit) -> None:
    frozen.add("alpha").environment_read = True
    async with frozen.run_test(size=(120, 30)) as pilot:
        await eventually(lambda: bool(frozen.screen.query(Composer)), "the chat")
        side, beside = frozen.screen.query_one("#side"), frozen.screen.query_one("#main")
        await pilot.press("alt+z")
        assert side.display and beside.size.width == 86
        await pilot.press("m")
        await eventually(lambda: beside.size.width == 120, "the whole width")
        await pilot.press("escape")
        await eventually(lambda: beside.size.width == 86, "the list beside it")
        await pilot.press("m", "alt+z")
        await eventually(lambda: beside.size.width == 86, "the list beside it")
        assert type(frozen.focused).__name__ == "Composer"
