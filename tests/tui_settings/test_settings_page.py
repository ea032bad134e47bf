"""The settings page on the real service."""

import os
import shutil
import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quarterdeck.cli.cockpit import LocalMachine
from quarterdeck.cli.target import find_target
from quarterdeck.tui.settings.listing import PARTS, notes_beside
from quarterdeck.tui.settings.screen import SettingsScreen
from tests.cli.test_cli_agents import NPM
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text
from tests.tui_shell.live import Desk, Installation


@asynccontextmanager
async def settings(live: Installation, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Desk]:
    """A cockpit with the settings open, on the configuration of the installation's home."""
    monkeypatch.setenv("QUARTERDECK_HOME", str(live.home))
    async with live.cockpit((110, 50)) as desk:
        desk.app.surroundings = LocalMachine(find_target(None))
        await desk.see("online", "No replicas yet")
        await desk.press("comma")
        await desk.see("1 General", "Appearance and terminal", "dark")
        yield desk


async def go_to(desk: Desk, name: str) -> None:
    """Moves the cursor to the line of a name, in whichever part it is."""
    screen = desk.app.screen
    assert isinstance(screen, SettingsScreen)
    await eventually(lambda: any(row.name == name for row in screen._rows()))
    section = next(row.part for row in screen._rows() if row.name == name and not row.head)
    part = next(n for n, sections in enumerate(PARTS.values(), 1) if section in sections)
    await desk.press(str(part), "home")
    for _ in range(60):
        await desk.pilot.pause()
        if screen.listing.chosen_row is not None and screen.listing.chosen_row.name == name:
            return
        await desk.press("down")
    raise AssertionError(f"no line {name!r}\n{desk.text}")


def file(live: Installation) -> Path:
    return live.home / "config.toml"


async def test_the_look_changes_at_once_and_is_kept(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(live).write_text(
        '# mine\n[keys]\n"replica.delete" = "D"\n\n[cockpit]\nmouse = true # so\n'
    )
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Theme")
        await desk.press("enter")
        await eventually(lambda: desk.app.theme == "textual-light")
        await go_to(desk, "Mouse")
        await desk.press("enter")
        await desk.see("your terminal selects text itself")
    text = file(live).read_text()
    assert tomllib.loads(text)["cockpit"] == {"theme": "light", "mouse": False}
    assert text.startswith("# mine\n[keys]\n")
    assert "mouse = false # so" in text
    file(live).unlink()


@pytest.mark.long
async def test_an_agent_is_installed_to_the_end_after_it_could_not_be(
    live: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    npm = tmp_path / "programs" / "npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NPM_PREFIX", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("NPM_PACKAGE", "@google/gemini-cli")
    monkeypatch.setenv("NPM_FAILS", "1")
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Gemini")
        await desk.see("enter to install (qd agents install gemini)")
        await desk.press("enter")
        await desk.see("gemini was not installed", "npm ERR! 404", "npm: exit status 1")
        await desk.see("enter to install (qd agents install gemini)")
        monkeypatch.delenv("NPM_FAILS")
        await desk.press("enter")
        await desk.see("not ready 1.2.3", "Installed; replicas see it")
    assert (live.home / "agents/bin/gemini").exists()
    shutil.rmtree(live.home / "agents")


async def test_a_providers_key_is_set_masked_and_removed(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "codex")
        await desk.press("enter")
        await desk.see("Key of codex")
        await desk.press("enter")
        await desk.see("Required.")
        await desk.write("sk-1234567890abcdef")
        assert "sk-1234567890abcdef" not in desk.text
        await desk.press("enter")
        await desk.see("cdef", "enter to replace")
        assert "567890" not in desk.text
        await desk.press("d")
        await desk.see("Remove the key of codex?")
        await desk.press("y")
        await desk.miss("cdef")


@pytest.mark.long
async def test_a_refusal_stands_below_the_field_and_nothing_is_lost(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Add provider")
        await desk.press("enter")
        await desk.see("Provider")
        await desk.write("Not a name")
        await desk.press("enter")
        await eventually(lambda: desk.app.screen.query_one("#form-error").size.height)
        assert "Not a name" in desk.text
        await desk.press("escape")
        await desk.miss("Not a name")


async def test_an_api_key_is_shown_once_and_revoked(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Create a key")
        await desk.press("enter")
        await desk.see("Name of the new key")
        await desk.write("robot")
        await desk.press("enter")
        await desk.see("API key robot", "Shown once", "sk_")
        await desk.press("escape")
        await desk.see("robot", "never used")
        await go_to(desk, "robot")
        await desk.press("d")
        await desk.see("Revoke robot?")
        await desk.press("y")
        await desk.miss("robot")


@pytest.mark.long
async def test_notifications_go_where_they_are_sent(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Target")
        await desk.press("enter")
        await desk.see("Address of notifications")
        await desk.write("json://localhost:9/topic")
        await desk.press("enter")
        await desk.miss("Address of notifications")
        await desk.see("json   ")
        await desk.press("d")
        await desk.see("Send no notifications?")
        await desk.press("y")
        await desk.see("none")


async def test_rules_and_quiet_hours_of_notices_are_kept(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "When it failed")
        await desk.press("enter")
        await eventually(lambda: desk.app.options.notices_failed == "bell")
        await go_to(desk, "Quiet hours")
        await desk.press("enter")
        await desk.see("Such as 22:00-07:00")
        await desk.write("22-7")
        await desk.press("enter")
        await desk.see("two different times")
        await desk.press("ctrl+u")
        await desk.write("22:00-07:00")
        await desk.press("enter")
        await desk.see("no notices then; local time")
        kept = tomllib.loads(file(live).read_text())["cockpit"]
        assert kept == {"notices_failed": "bell", "quiet": "22:00-07:00"}
        await desk.press("enter")
        await desk.see("Such as 22:00-07:00")
        await desk.write("none")
        await desk.press("enter")
        await eventually(lambda: desk.app.options.quiet == "")
    file(live).unlink()


@pytest.mark.long
async def test_another_service_is_gone_to_without_leaving(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (live.home / "service" / "key").read_text().strip()
    socket = live.home / "service" / "qd.sock"
    file(live).write_text(
        f'[profiles.work]\nsocket = "{socket}"\nkey = "{key}"\n'
        '[profiles.locked]\nsocket = "/nowhere"\nkey_variable = "NO_SUCH_KEY"\n'
    )
    await live.create("here-already")
    monkeypatch.setenv("QUARTERDECK_HOME", str(live.home))
    async with live.cockpit((110, 50)) as desk:
        desk.app.surroundings = LocalMachine(find_target(None))
        await desk.see("here-already")
        before = desk.app.app_state
        await desk.press("comma", "3")
        await desk.see("work", "locked", "Create a key")
        await go_to(desk, "locked")
        await desk.press("enter")
        await desk.see("the variable NO_SUCH_KEY, which is not set")
        await go_to(desk, "work")
        await desk.press("enter")
        await desk.see(f"unix:{socket}"[:20], "here-already", "n new")
        assert desk.app.app_state is not before
    file(live).unlink()


@pytest.mark.long
async def test_a_service_is_made_known_and_gone_to(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (live.home / "service" / "key").read_text().strip()
    await live.create("here-already")
    monkeypatch.setenv("QUARTERDECK_HOME", str(live.home))
    async with live.cockpit((110, 50)) as desk:
        desk.app.surroundings = LocalMachine(find_target(None))
        await desk.see("here-already")
        before = desk.app.app_state
        await desk.press("comma", "3")
        await desk.see("Add connection", "Create a key")
        await go_to(desk, "local")
        await desk.press("n")
        await desk.see("New connection")
        await desk.write("local")
        await desk.press("tab")
        await desk.write("ftp://x")
        await desk.press("ctrl+s")
        await desk.see("Starts with http://, https:// or unix:/.")
        await desk.press("ctrl+u")
        await desk.write(f"unix:{live.home}/service/qd.sock")
        await desk.press("tab")
        await desk.write(key)
        await desk.press("ctrl+s")
        await desk.see("Name already in use.")
        assert key not in desk.text
        await desk.press("ctrl+u")
        await desk.write("work")
        await desk.press("ctrl+s")
        await desk.miss("New connection")
        await go_to(desk, "work")
        await desk.press("d")
        await desk.see("Remove it by hand")
        await desk.press("enter")
        await desk.see("here-already", "n new")
        assert desk.app.app_state is not before
    assert key not in file(live).read_text()
    file(live).unlink()


@pytest.mark.long
async def test_without_a_key_it_is_said_how_to_get_one(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Add connection")
        await desk.press("enter")
        await desk.see("New connection")
        await desk.write("dead")
        await desk.press("tab")
        await desk.write("http://127.0.0.1:9")
        await desk.press("ctrl+s")
        await desk.miss("New connection")
        await go_to(desk, "dead")
        await desk.press("enter")
        await desk.see("There is no key for dead. Get one with: qd auth login --profile dead.")
    file(live).unlink()


@pytest.mark.long
async def test_where_nothing_is_added_the_key_says_so(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "Theme")
        await desk.press("n")
        await desk.see("Nothing to add here")


async def test_settings_are_in_parts_and_each_keeps_its_line(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        screen = desk.app.screen
        assert isinstance(screen, SettingsScreen)
        await desk.press("down")
        row = screen.listing.chosen
        await desk.press("2")
        await desk.see("[2 Agents and credentials]", "Built-in", "Add provider")
        assert "Theme" not in desk.text
        await desk.press("tab")
        await desk.see("[3 Connections]", "Create a key")
        await desk.press("shift+tab", "shift+tab")
        await desk.see("[1 General]", "Theme")
        assert screen.listing.chosen == row
        await desk.press("shift+tab")
        await desk.see("[5 Keys]", "replica.delete")
        await desk.pilot.click("TabBar", offset=(3, 0))
        await desk.see("[1 General]")
        await desk.press("4", "down", "down")
        await desk.see("[4 Notifications]")
        row = screen.listing.chosen
        await desk.press("escape")
        await desk.see("n new")
        await desk.press("comma")
        await desk.see("[4 Notifications]")
        again = desk.app.screen
        assert isinstance(again, SettingsScreen) and again is not screen
        assert again.listing.chosen == row
        await desk.press("1")
        await desk.see("[1 General]", "Theme")


async def test_a_row_that_the_service_tells_is_returned_to_when_it_is_read(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await go_to(desk, "opencode")
        screen = desk.app.screen
        assert isinstance(screen, SettingsScreen)
        row = screen.listing.chosen
        for _ in range(2):
            await desk.press("escape")
            await desk.see("n new")
            await desk.press("comma")
            await desk.see("[2 Agents and credentials]", "opencode")
            again = desk.app.screen
            assert isinstance(again, SettingsScreen) and again is not screen
            await eventually(lambda page=again: page.listing.chosen == row)
        await desk.press("home", "1", "2")
        await desk.see("[2 Agents and credentials]", "opencode")
        assert again.listing.cursor == again.listing._able[0]


async def test_settings_are_found_across_parts(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with settings(live, monkeypatch) as desk:
        await desk.press("2", "slash")
        await desk.write("terminal")
        await desk.see("General: Appearance and terminal", "Notifications: In this terminal")
        await desk.see("Clipboard access", "When it asks")
        await desk.write(" clip")
        await desk.see("2 of ")
        assert "Built-in" not in desk.text
        await desk.press("enter", "enter")
        await desk.see("refuse")
        await desk.press("slash")
        await desk.write(" nowhere")
        await desk.see("No setting has these words.")
        await desk.press("escape")
        await desk.see("[2 Agents and credentials]", "Built-in")
        await desk.press("escape")
        await desk.see("n new")
    file(live).unlink()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 20)])
async def test_all_parts_have_their_key_on_the_screen(
    frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    async with frozen.run_test(size=size) as pilot:
        await eventually(lambda: "n new" in screen_text(frozen))
        await pilot.press("comma")
        await eventually(lambda: "[1 General]" in screen_text(frozen))
        for number in "2345":
            await pilot.press(number)
            await eventually(lambda n=number: f"[{n} " in screen_text(frozen))
        if size[0] >= 80:
            assert all(f"{number} " in screen_text(frozen) for number in range(1, 6))


async def test_a_replica_that_another_service_has_is_counted(frozen: FrozenCockpit) -> None:
    """Such as that of a copy: the list shows it once."""
    state = frozen.add("fix-login")
    work = frozen.add_service("work")
    assert notes_beside(frozen.services)["work"].endswith("connecting")
    work.replicas[state.id] = state
    note = notes_beside(frozen.services)["work"]
    assert note.endswith(" · 1 of its replicas shown as another service's")
