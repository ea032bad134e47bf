"""Replicas from the list: made, slept, woken, deleted, gone."""

import pytest
from textual import events
from textual.widgets import TextArea

from quarterdeck.store import lookout
from tests.tui_shell.live import Installation, until


async def test_a_replica_is_made_and_answers(live: Installation) -> None:
    async with live.cockpit() as desk:
        await desk.see("online", "No replicas yet")
        await desk.press("n", *"Do it:", "enter", "enter", *"```sh", "enter")
        await desk.press(*"echo done-$((20+3))", "enter", *"```")
        await desk.press("shift+tab", *"first-one", "ctrl+s")
        await desk.see("first-one · builtin", "qd/first-one", "echo done-")
        await desk.see("1 block ran", "○ idle")
        assert desk.focus == "Composer"
        assert desk.replica("first-one").active


async def test_errors_stand_beside_their_fields_and_nothing_typed_is_lost(
    live: Installation,
) -> None:
    await live.create("taken")
    async with live.cockpit((80, 24)) as desk:
        await desk.see("taken")
        await desk.press("n", *"Hello", "shift+tab", *"taken", "ctrl+s")
        await desk.see("has this name already")
        await desk.press("ctrl+u", *"a", "space", *"b", "ctrl+s")
        await desk.see("no white space")
        await desk.press("ctrl+u", *["shift+tab"] * 4, "ctrl+u")
        await desk.press(*"/nowhere", "ctrl+s")
        await desk.see("/nowhere", "no git repository")
        assert "Hello" in desk.text
        await desk.press("escape")
        await desk.miss("New replica")
        await desk.press("n")
        await desk.see("New replica", "Hello", "/nowhere")


async def test_the_first_message_takes_the_keys_of_the_composer(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n", *"one", "ctrl+j", *"two", "enter", *"three", "alt+enter", *"four")
        await desk.see("four")
        field = desk.app.screen.query_one("#message", TextArea)
        assert field.text == "one\ntwo\nthree\nfour"
        await desk.press("tab")
        assert not field.has_focus


async def test_the_dialog_says_that_the_service_is_down(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n", *"Keep")
        await desk.see("Keep")
        live.kill()
        await desk.press("ctrl+s")
        await desk.see("No service answers", "Keep")


async def test_sleep_wake_and_delete_with_a_question(live: Installation) -> None:
    await live.create("alpha")
    async with live.cockpit() as desk:
        await desk.see("alpha", "idle")
        await desk.press("s")
        await desk.see("☾ sleeping: a message wakes it")
        await desk.press("s")
        await desk.see("It sleeps already.")
        await desk.press("w")
        await desk.see("○ idle")
        await desk.press("d")
        await desk.see("Delete alpha?")
        await desk.press("enter")
        await desk.miss("Delete alpha?")
        assert "alpha" in desk.text
        await desk.press("d", "y")
        await desk.see("No replicas yet")
        assert desk.focus == "ReplicaList"


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
        await desk.see("It was deleted")
        await until(lambda: desk.focus == "ReplicaList")
        await desk.see("No replicas yet")
        await desk.press("n")
        await desk.see("New replica")


async def test_a_turn_is_interrupted_from_the_list_without_its_pane(live: Installation) -> None:
    await live.create("busy", "```sh\nsleep 100\n```")
    await live.create("other")
    async with live.cockpit() as desk:
        await desk.see("busy", "other", "working")
        await desk.press("j")
        await desk.see("other · builtin")
        await desk.press("k")
        desk.app.deck.look_at(None)
        await until(lambda: desk.replica("busy").works)
        await desk.press("i")
        await until(lambda: not desk.replica("busy").works, "the end of the turn")


async def test_names_of_any_kind_break_nothing(live: Installation) -> None:
    await live.create("x" * 200)
    await live.create("\x1b[31mred\x07")
    async with live.cockpit((60, 20)) as desk:
        await desk.see("red", "xxx")
        assert "\x1b" not in desk.text and "\x07" not in desk.text
        for key in ("enter", "escape", "j", "enter", "escape", "d", "n"):
            await desk.press(key)
        await desk.see("red")


async def test_who_comes_back_to_the_window_sees_what_was_made_elsewhere(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "LIST_PERIOD", 3_600.0)
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online", "No replicas yet")
        await live.create("elsewhere")
        await desk.miss("elsewhere")
        desk.app.post_message(events.AppBlur())
        desk.app.post_message(events.AppFocus())
        await desk.see("elsewhere")


async def test_a_notice_that_stands_there_is_not_said_again(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        for text in ("one thing", "one thing", "another"):
            desk.app.notify(text, title="Said")
        await desk.see("one thing", "another")
        assert desk.text.count("one thing") == 1
