"""Keys of a person's own do what they were asked for, and the screen names them."""

import ast
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import quarterdeck.tui
from quarterdeck.tui.actions import keyed
from quarterdeck.tui.actions.model import use_keys
from quarterdeck.tui.options import all_ids, read_options
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit
from tests.tui_shell.live import Desk


@asynccontextmanager
async def cockpit(tmp_path: Path, **keys: object) -> AsyncGenerator[Desk]:
    table: dict[str, object] = {name.replace("__", "."): key for name, key in keys.items()}
    app = FrozenCockpit(tmp_path / "client", options=read_options({"keys": table}))
    app.add("fix-login", awaiting_input=True)
    async with app.run_test(size=(170, 70), notifications=True) as pilot:
        desk = Desk(app, pilot)
        await desk.see("fix-login")
        yield desk


async def test_an_action_has_the_key_that_was_asked_for(tmp_path: Path) -> None:
    async with cockpit(tmp_path, replica__delete="D", app__help=["h", "?"]) as desk:
        await desk.see("D delete", "h keys")
        await desk.press("d")
        await desk.press("D")
        await desk.see("Delete fix-login?")
        await desk.press("escape", "h")
        await desk.see("List of replicas")


@pytest.mark.long
async def test_an_action_without_keys_is_out_of_reach_of_them(tmp_path: Path) -> None:
    async with cockpit(tmp_path, replica__delete=[]) as desk:
        await desk.press("d", "?")
        await desk.see("Delete (asks first)")
        assert "Delete fix-login?" not in desk.text
        assert "no key" in desk.text
        assert "d delete" not in desk.text


@pytest.mark.long
async def test_keys_that_widgets_look_at_themselves(tmp_path: Path) -> None:
    keys = {"composer__send": "ctrl+s", "composer__newline": "enter", "list__down": "x"}
    async with cockpit(tmp_path, **keys) as desk:
        await desk.press("enter")
        await desk.see("ctrl+s send")
        await desk.press("a", "enter", "b")
        await desk.see("│ a", "│ b")


@pytest.mark.long
async def test_faults_are_named_and_the_cockpit_opens(tmp_path: Path) -> None:
    async with cockpit(tmp_path, replica__delte="D", replica__sleep="d") as desk:
        await desk.see("There is no action replica.delte", "d is replica.delete and")
        await desk.press("d")
        await desk.see("Delete fix-login?")


@pytest.mark.long
async def test_help_of_a_page_does_not_tell_the_tabs_of_a_replica(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("e")
        await desk.see("[1 General]")
        await eventually(lambda: type(desk.app.screen).__name__ == "EnvironmentsScreen")
        await desk.press("?")
        await desk.see("Global")
        assert "Tabs of a replica" not in desk.text


@pytest.mark.long
async def test_help_tells_here_the_tabs_and_anywhere_and_then_all(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:
        await desk.press("?")
        await desk.see("List of replicas", "Tabs of a replica", "Global")
        assert "Composer" not in desk.text
        await desk.press("?")
        await desk.see("replica.new")
        await desk.press("end")
        await desk.see("Rebind in config.toml")
        await desk.press("q")
        await desk.miss("Rebind in config.toml")


@pytest.mark.long
async def test_dialogs_tell_their_own_keys_and_keep_what_was_typed(tmp_path: Path) -> None:
    async with cockpit(tmp_path, app__keys="f9") as desk:
        await desk.press("n")
        await desk.see("New replica")
        await desk.write("hello there")
        await desk.press("f9")
        await desk.see("New replica form", "Next field", "Any dialog", "Help for this pane")
        assert "Global" not in desk.text
        assert "Search commands and replicas" not in desk.text
        assert "$EDITOR" not in desk.text  # the form kit's, not this dialog's
        await desk.press("escape")
        await desk.miss("Any dialog")
        await desk.write("!")
        await desk.see("New replica", "hello there!")


@pytest.mark.long
def test_every_dialog_has_the_keys_of_all_dialogs() -> None:
    for path in Path(quarterdeck.tui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in {"Dialog", "HelpScreen"}:
                assert not any("ModalScreen" in ast.unparse(base) for base in node.bases), path


@pytest.mark.long
def test_sentences_name_only_keys_that_there_are() -> None:
    found: set[str] = set()
    for path in Path(quarterdeck.tui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            # In a sentence it is text; what Python puts in is parsed already.
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(r"\{([a-z]+[.-][a-z0-9._-]+)\}", node.value))
    assert "replica.wake" in found and len(found) > 30
    assert found <= set(all_ids())


def test_sentences_name_the_keys_that_were_asked_for() -> None:
    sentence = "{replica.wake} wakes it, {form.close} closes."
    assert keyed(sentence) == "w wakes it, esc closes."
    use_keys({"replica.wake": ("W", "f5"), "form.close": ()})
    assert keyed(sentence) == "W wakes it, the palette closes."


@pytest.mark.long
async def test_dialogs_and_fields_follow_the_keys(tmp_path: Path) -> None:
    keys = {
        "confirm__yes": "j",
        "form__close": "f4",
        "form__save": "f8",
        "composer__send": "f9",
        "replica__new": "N",
    }
    async with cockpit(tmp_path, **keys) as desk:
        await desk.press("d")
        await desk.see("Delete fix-login?", "No (n)", "(j)")
        await desk.press("y")
        await desk.see("Delete fix-login?")
        await desk.press("n")
        await desk.miss("Delete fix-login?")
        await desk.press("N")
        await desk.see("f8 create")
        await desk.press("escape")
        await desk.see("New replica")
        await desk.press("f4")
        await desk.miss("New replica")
        await desk.press("enter")
        await desk.see("f9 ")


@pytest.mark.long
async def test_the_single_command_and_the_search_in_changes_follow_the_keys(
    tmp_path: Path,
) -> None:
    keys = {"exec__earlier": "f6", "search__leave": "f7", "search__go": "f8"}
    async with cockpit(tmp_path, **keys) as desk:
        desk.app.app_state.exec_runs.history.append("make all")
        await desk.press("7", "f6")
        await desk.see("make all")
        await desk.press("escape", "3")
        await eventually(lambda: desk.focus == "ChangesView")
        await desk.press("slash", *"word", "escape", "enter")
        await desk.see("f8 first match", "word")
        await desk.press("f7")
        await desk.miss("f8 first match")


@pytest.mark.long
async def test_a_click_on_the_bottom_line_is_as_good_as_the_key(tmp_path: Path) -> None:
    async with cockpit(tmp_path) as desk:

        async def click(words: str) -> None:
            row = desk.text.splitlines()[-1]
            await desk.pilot.click("KeyLine", offset=(row.index(words) + 1, 0))

        await desk.see("? keys")
        await click("? keys")
        await desk.see("Global")
        await desk.press("escape")
        await desk.miss("Global")
        await click("enter open")
        await desk.see("ctrl+j line")
        await desk.press("x")
        await click("tab transcript")
        await desk.see("m write")
        assert desk.focus == "ChatTranscript"
        await click("esc list")
        await eventually(lambda: desk.focus == "ReplicaListView")
