"""Replicas from the list: made, slept, woken, deleted, gone."""

import pytest
from textual import events
from textual.widgets import TextArea

from quarterdeck.store import connection_monitor as lookout
from tests.support.waiting import eventually
from tests.tui_shell.live import Installation


async def test_a_replica_is_made_and_answers(live: Installation) -> None:
    async with live.cockpit() as desk:
        await desk.see("online", "No replicas yet")
        await desk.press("n", *"Do it:", "enter", "enter", *"```sh", "enter")
        await desk.press(*"echo done-$((20+3))", "enter", *"```")
        await desk.tab_to("name")
        await desk.press(*"first-one", "ctrl+s")
        await desk.see("first-one · builtin", "qd/first-one", "echo done-")
        await desk.see("1 block ran", "○ idle")
        assert desk.focus == "Composer"
        assert desk.replica("first-one").active


@pytest.mark.long
async def test_errors_stand_beside_their_fields_and_nothing_typed_is_lost(
    live: Installation,
) -> None:
    await live.create("taken")
    async with live.cockpit((80, 24)) as desk:
        await desk.see("taken")
        await desk.press("n", *"Hello")
        await desk.tab_to("name")
        await desk.press(*"taken", "ctrl+s")
        await desk.see("has this name already")
        await desk.press("ctrl+u", *"a", "space", *"b", "ctrl+s")
        await desk.see("cannot contain spaces")
        await desk.press("ctrl+u")
        await desk.tab_to("repository")
        await desk.press("ctrl+u")
        await desk.press(*"/nowhere", "ctrl+s")
        await desk.see("/nowhere", "not a git repository")
        assert "Hello" in desk.text
        await desk.press("escape")
        await desk.miss("New replica")
        await desk.press("n")
        await desk.see("New replica", "Hello", "/nowhere")


@pytest.mark.long
async def test_the_first_message_takes_the_keys_of_the_composer(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n", *"one", "ctrl+j", *"two", "enter", *"three", "alt+enter", *"four")
        await desk.see("four")
        field = desk.app.screen.query_one("#message", TextArea)
        assert field.text == "one\ntwo\nthree\nfour"
        await desk.press("tab")
        assert not field.has_focus


@pytest.mark.long
async def test_the_dialog_says_that_the_service_is_down(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n", *"Keep")
        await desk.see("Keep")
        live.kill()
        await desk.press("ctrl+s")
        await desk.see("No service answers", "Keep")


async def test_the_bottom_line_has_keys_of_replicas_when_there_are_some(live: Installation) -> None:
    async with live.cockpit() as desk:
        await desk.see("No replicas yet", "n new", "q quit")
        assert not any(keys in desk.text for keys in ("enter open", "t terminal", "d delete"))
        made = await live.create("first")
        await desk.see("first", "enter open", "t terminal", "d delete")
        async with live.client() as client:
            await client.replicas.delete(made.id)
        await desk.see("No replicas yet")
        await desk.miss("d delete")
        await desk.see("n new")


@pytest.mark.long
async def test_sleep_wake_and_delete_with_a_question(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("alpha", "idle")
        await desk.press("s")
        await desk.see("☾ sleeping: a message wakes it")
        await desk.press("s")
        await desk.see("Already asleep.")
        await desk.press("w")
        await desk.see("○ idle")
        await desk.press("d")
        await desk.see("Delete alpha?")
        await desk.press("enter")
        await desk.miss("Delete alpha?")
        assert "alpha" in desk.text
        await desk.press("d", "y")
        await desk.see("No replicas yet")
        assert desk.focus == "ReplicaListView"


@pytest.mark.long
async def test_a_replica_that_is_deleted_elsewhere_says_so_and_leaves_the_keys_usable(
    live: Installation,
) -> None:
    made = await live.create("doomed")
    async with live.cockpit((50, 20)) as desk:
        await desk.see("doomed")
        await desk.press("enter")
        await desk.see("enter sends")
        assert desk.focus == "Composer"
        async with live.client() as client:
            await client.replicas.delete(made.id)
        await desk.see("Deleted from")
        await eventually(lambda: desk.focus == "ReplicaListView")
        await desk.see("No replicas yet")
        await desk.press("n")
        await desk.see("New replica")


@pytest.mark.long
async def test_a_turn_is_interrupted_from_the_list_without_its_pane(live: Installation) -> None:
    await live.create("busy", "```sh\nsleep 100\n```")
    await live.create("other")
    async with live.cockpit() as desk:
        await desk.see("busy", "other", "working")
        await desk.press("S", "j")
        await desk.see("other · builtin")
        await desk.press("k")
        desk.app.app_state.look_at(None)
        await eventually(lambda: desk.replica("busy").works)
        await desk.press("i")
        await desk.see("Interrupt busy?", "Stops the running turn")
        await desk.press("escape")
        await desk.miss("Interrupt busy?")
        assert desk.replica("busy").works
        await desk.press("i", "y")
        await eventually(lambda: not desk.replica("busy").works, "the end of the turn")


@pytest.mark.long
async def test_the_line_of_keys_is_empty_below_a_dialog(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("○ idle", "n new", "? keys")
        await desk.press("d")
        await desk.see("Delete alpha?")
        await desk.miss("? keys")
        async with live.client() as client:
            await client.replicas.sleep(desk.replica("alpha").id)
        await desk.see("☾ alpha", "Delete alpha?")  # news below it bring no keys
        assert "? keys" not in desk.text
        await desk.press("escape")
        await desk.see("n new", "? keys")
        await desk.press("e")
        await desk.see("global")
        await desk.press("n")
        await desk.see("New environment")
        await desk.miss("? keys")


@pytest.mark.long
async def test_what_stops_a_running_turn_asks_first(live: Installation) -> None:
    await live.create("busy", "```sh\nsleep 100\n```")
    async with live.cockpit() as desk:
        await desk.see("busy", "working")
        for key, question in (("s", "Sleep busy?"), ("A", "Archive busy?")):
            await desk.press(key)
            await desk.see(question, "Stops the running turn")
            await desk.press("n")
            await desk.miss(question)
        assert desk.replica("busy").works
        # In its chat the person sees the turn, and stops it at once.
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("tab", "i")
        await desk.see("○ idle")
        await desk.press("escape", "s")
        await desk.see("☾ sleeping")


@pytest.mark.long
@pytest.mark.parametrize("size", [(120, 40), (80, 24), (50, 20)])
async def test_hints_of_empty_tabs_are_whole(live: Installation, size: tuple[int, int]) -> None:
    hints = {
        "5": "reports to ~/.quarterdeck/canvas. u uploads a file.",
        "6": "from .quarterdeck/hooks/warm.sh and start.sh in its repositories.",
    }
    await live.create("empty")
    async with live.cockpit(size=size) as desk:

        def in_one_line() -> str:
            rows = [row.split("│") for row in desk.text.splitlines()]
            return " ".join(" ".join(row[1] if row[1:] else row[0] for row in rows).split())

        await desk.see("empty", "idle")
        for tab, hint in hints.items():
            await desk.press(tab)
            await eventually(lambda hint=hint: hint in in_one_line(), hint)
            await desk.press("escape")


@pytest.mark.long
async def test_names_of_any_kind_break_nothing(live: Installation) -> None:
    await live.create("x" * 200)
    await live.create("\x1bcred\x07")
    async with live.cockpit((60, 20)) as desk:
        await desk.see("red", "xxx")
        assert "\x1b" not in desk.text and "\x07" not in desk.text
        for key in ("enter", "escape", "j", "enter", "escape", "d", "n"):
            await desk.press(key)
        await desk.see("red")


@pytest.mark.long
async def test_who_comes_back_to_the_window_sees_what_was_made_elsewhere(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "CHECK_PERIOD", 3_600.0)
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online", "No replicas yet")
        await live.create("elsewhere")
        await desk.miss("elsewhere")
        desk.app.post_message(events.AppBlur())
        desk.app.post_message(events.AppFocus())
        await desk.see("elsewhere")


@pytest.mark.long
async def test_a_notice_that_stands_there_is_not_said_again(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        for text in ("one thing", "one thing", "another"):
            desk.app.notify(text, title="Said")
        await desk.see("one thing", "another")
        assert desk.text.count("one thing") == 1
