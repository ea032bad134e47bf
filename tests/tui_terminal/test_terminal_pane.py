"""Several terminals of a replica in the cockpit: chosen, named, searched, copied from."""

from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.client.terminals import TerminalsApi
from quarterdeck.tui.outside import opener, shown_address
from quarterdeck.tui.panes import terminal_reading
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.terminal.host import Offers
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.widgets.replica_list import ReplicaListView
from quarterdeck.wire.terminals import MAX_SESSIONS, TerminalSession
from tests.support.waiting import eventually
from tests.tui_shell.conftest import fixed_clock_zone, installation, live
from tests.tui_shell.live import Desk, Installation

__all__ = ["fixed_clock_zone", "installation", "live"]

OFFER = r"printf '\e]52;c;c2VjcmV0\a'"


def run(desk: Desk, text: str) -> None:
    """Types a line into the terminal that is shown."""
    view = desk.app.screen.query_one(TerminalPane).current
    assert view is not None
    view.type(f"{text}\r")


async def open_terminals(desk: Desk, name: str) -> None:
    """As a person does from the list."""
    desk.app.screen.query_one(ReplicaListView).select(desk.replica(name).id)
    await desk.press("t")


@pytest.mark.long
async def test_up_to_eight_are_chosen_named_and_found_again(live: Installation) -> None:
    await live.create("alpha")
    await live.create("beta")
    async with live.cockpit() as desk:
        await eventually(lambda: {"alpha", "beta"} <= {s.name for s in desk.app.services.ordered()})
        await eventually(lambda: desk.replica("alpha").active and desk.replica("beta").active)
        await open_terminals(desk, "alpha")
        await desk.see("[1 bash 1]", "workspace$")
        run(desk, "echo first-$((1+1))")
        await desk.see("first-2")
        await desk.press("ctrl+g", "comma")
        await desk.see("enter name it")
        await desk.press(*["backspace"] * 6, *"build", "enter")
        await desk.see("[1 build]")
        for number in range(2, 9):
            await desk.press("ctrl+g", "c")
            await desk.see(f"[{number} bash")
        await desk.press("ctrl+g", "c")
        await desk.see("Limit of 8 terminals reached")
        assert desk.focus == "TerminalView"
        await desk.press("ctrl+g", "3")
        await desk.see("[3 bash")
        await desk.pilot.click("#sessions", offset=(3, 0))
        await desk.see("[1 build]", "first-2")
        await desk.press("ctrl+g", "p", "ctrl+g", "p", "ctrl+g", "n")
        await desk.see("[8 bash")
        await desk.press("ctrl+g", "3", "ctrl+g", "9", "ctrl+g", "l")
        await eventually(lambda: desk.focus == "ReplicaListView")
        # Back from another replica: the one chosen last, and the name.
        await open_terminals(desk, "beta")
        await desk.see("beta · builtin", "[1 bash 1]", "workspace$")
        await desk.press("ctrl+g", "l")
        await eventually(lambda: desk.focus == "ReplicaListView")
        await open_terminals(desk, "alpha")
        await desk.see("[3 bash", "1 build")
        await eventually(lambda: desk.focus == "TerminalView")


@pytest.mark.long
async def test_a_terminal_that_the_service_names_twice_is_shown_once(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    listed, created = TerminalsApi.list, TerminalsApi.create

    async def twice(self: TerminalsApi, replica_id: UUID) -> list[TerminalSession]:
        return await listed(self, replica_id) * 2

    async def same(self: TerminalsApi, replica_id: UUID, *size: int) -> TerminalSession:
        return next(iter(await listed(self, replica_id)), None) or await created(
            self, replica_id, *size
        )

    monkeypatch.setattr(TerminalsApi, "list", twice)
    monkeypatch.setattr(TerminalsApi, "create", same)
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$")
        await desk.press("ctrl+g", "c")
        run(desk, "echo still-$((1+1))")
        await desk.see("still-2")
        await desk.press("ctrl+g", "l", "t")
        await desk.see("still-2")
        assert len(desk.app.screen.query(TerminalView)) == 1


@pytest.mark.long
async def test_of_endless_terminals_the_first_are_shown(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile service lists them; each would be a view and a connection."""
    await live.create("alpha")
    listed, created = TerminalsApi.list, TerminalsApi.create

    async def many(self: TerminalsApi, replica_id: UUID) -> list[TerminalSession]:
        one = next(iter(await listed(self, replica_id)), None)
        one = one or await created(self, replica_id, 80, 24)
        others = range(3 * MAX_SESSIONS)
        return [one, *(one.model_copy(update={"id": UUID(int=n)}) for n in others)]

    adding = list[str]()
    add = TerminalPane._add  # pyright: ignore[reportPrivateUsage]

    async def added(self: TerminalPane, session: TerminalSession) -> bool:
        adding.append(str(session.id))
        return await add(self, session)

    monkeypatch.setattr(TerminalsApi, "list", many)
    monkeypatch.setattr(TerminalPane, "_add", added)
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await eventually(lambda: len(adding) >= MAX_SESSIONS)
        await desk.see("workspace$")
        assert len(adding) == MAX_SESSIONS


@pytest.mark.long
async def test_search_copy_links_and_offers(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    opened: list[list[str]] = []

    async def open_address(command: list[str]) -> bool:
        opened.append(command)
        return True

    monkeypatch.setattr(terminal_reading, "open_address", open_address)
    monkeypatch.setattr(terminal_reading, "opener", lambda uri: ["browser", uri])
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$")
        run(desk, "for i in $(seq 300); do echo line-$i; done; echo https://example.org/x")
        await desk.see("line-300")
        await desk.press("ctrl+g", "slash", *"LINE-17", "up")
        await desk.see(" 2 of 11 · ", "lines back", "line-178", "enter go there")
        await desk.press("enter", "n", "n")
        await desk.see("LINE-17: 4 of 11", "v mark")
        await desk.press("0", "V", "j", "y")
        await eventually(lambda: desk.app.clipboard == "line-176\nline-177")
        await desk.see("workspace$")
        await desk.press("ctrl+g", "u")
        await desk.see("o open · c copy: https://example.org/x")
        assert opened == []
        await desk.press("o")
        await eventually(lambda: opened == [["browser", "https://example.org/x"]])
        await desk.press("q", *"echo", "space", *"it", "enter")
        await desk.see("echo it")
        run(desk, OFFER)
        await desk.see("ctrl+g y allow clipboard write (6 characters): secret")
        assert desk.app.clipboard != "secret"
        await desk.press("ctrl+g", "y")
        await eventually(lambda: desk.app.clipboard == "secret")
        desk.app.terminal_host.offers = Offers.REFUSE
        run(desk, f"{OFFER}; echo re''fused")
        await desk.see("refused")
        assert "allow clipboard write" not in desk.text


async def test_screen_and_scrollback_are_opened_in_the_editor(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    seen: list[str] = []

    async def look_at(app: object, name: str, data: bytes) -> None:
        seen.append(data.decode())

    monkeypatch.setattr(terminal_reading, "look_at", look_at)
    async with live.cockpit() as desk:
        await desk.see("○ idle")
        await desk.press("t")
        await desk.see("workspace$")
        run(desk, "for i in $(seq 300); do echo line-$i; done")
        await desk.see("line-300")
        await desk.press("ctrl+g", "left_square_bracket", "k", "v", "O")
        await eventually(lambda: seen, "the editor")
        lines = seen[0].splitlines()
        assert [line for line in lines if line.startswith("line-")] == [
            f"line-{n}" for n in range(1, 301)
        ]
        await desk.see("workspace$")
        await desk.press(*"echo", "space", *"it", "enter")  # the program has the keys again
        await desk.see("echo it")


@pytest.mark.parametrize(
    ("uri", "environment", "opens"),
    [
        ("https://example.org/a", {"DISPLAY": ":0"}, True),
        ("https://example.org/a", {}, False),
        ("https://example.org/a", {"DISPLAY": ":0", "SSH_CONNECTION": "1 2 3 4"}, False),
        ("file:///etc/passwd", {"DISPLAY": ":0"}, False),
        ("vscode://run?x", {"DISPLAY": ":0"}, False),
        ("--help", {"DISPLAY": ":0"}, False),
        ("https://ex\u0430mple.org/", {"DISPLAY": ":0"}, False),
        ("https://[bad/", {"DISPLAY": ":0"}, False),
    ],
)
def test_only_a_browsers_addresses_are_opened(
    uri: str, environment: dict[str, str], opens: bool, tmp_path: Path, monkeypatch
) -> None:
    browser = tmp_path / "xdg-open"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert (opener(uri, environment) is not None) is opens


def test_an_address_is_shown_without_what_hides() -> None:
    assert shown_address("https://a\u202eb\x1b[m") == "https://a\\u{202e}b\\u{1b}[m"
