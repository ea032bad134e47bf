"""Two services in one list: told apart, worked with, and neither waits for the other."""

import os
import socket
import tempfile
import tomllib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quarterdeck.cli.cockpit import LocalMachine
from quarterdeck.cli.target import embedded_target
from quarterdeck.client import Client
from quarterdeck.store.service_choice import ServiceChoice
from quarterdeck.tui.settings.listing import SettingsList
from quarterdeck.tui.widgets.replica_list import ReplicaListView
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation
from tests.tui_shell.test_shell_chat import opened, user_messages
from tests.tui_shell.test_shell_news import turn


@pytest.fixture(scope="module")
def second(installation: Installation) -> Iterator[Installation]:
    """Another service, for the tests of the module."""
    with tempfile.TemporaryDirectory(prefix="qd-") as directory:
        Path(directory).chmod(0o755)
        made = Installation(Path(directory) / "home", installation.repository)
        made.start()
        yield made
        made.stop()


@pytest.fixture
async def other(second: Installation) -> AsyncIterator[Installation]:
    """The other service, running, and without replicas before and after."""
    await _run(second)
    yield second
    await _run(second)
    await second.clear()


async def _run(service: Installation) -> None:
    if service.process is None or service.process.poll() is not None:
        service.start()
    await service.ready()


@asynccontextmanager
async def both(
    live: Installation,
    profile: str,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int] = (100, 30),
) -> AsyncGenerator[Desk]:
    """A cockpit on the first service, with this `[profiles.work]`."""
    with tempfile.TemporaryDirectory(prefix="qd-") as directory:
        monkeypatch.setenv("QUARTERDECK_HOME", directory)
        (Path(directory) / "config.toml").write_text(f"[profiles.work]\n{profile}\n")
        machine = LocalMachine(embedded_target()._replace(socket=live.home / "service/qd.sock"))
        async with live.cockpit(size, surroundings=machine) as desk:
            yield desk


def profile_of(other: Installation) -> str:
    key = (other.home / "service/key").read_text().strip()
    return f'socket = "{other.home}/service/qd.sock"\nkey = "{key}"\nshown = true'


async def choose(desk: Desk, name: str) -> None:
    """Put the cursor on a replica, and wait until it is shown."""
    desk.app.screen.query_one(ReplicaListView).select(desk.replica(name).id)
    await desk.see(f"│ {name} · ")


async def test_replicas_of_two_services_are_worked_with_in_one_list(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    there = await other.create("alpha")
    async with both(live, profile_of(other), monkeypatch) as desk:
        await desk.see("○ alpha", "○ work/alpha", "local ● ", "work ● ")
        await desk.press("slash")
        await desk.write("service:work")
        await desk.see("1 of 2")
        await desk.miss("○ alpha")
        await desk.press("enter")
        await opened(desk, "work/alpha")
        await desk.see("work/alpha · ", "enter sends ")
        await desk.write("```sh\nsleep 100\n```")
        await desk.press("enter")
        await desk.see("● working", "enter queues")
        await desk.press("ctrl+x")
        await desk.miss("enter queues")
        async with other.client() as client:
            assert await user_messages(client, there.id) == ["```sh\nsleep 100\n```"]
        await desk.press("alt+2")
        await desk.see("workspace$", "[1 bash 1]")
        await desk.press(*"echo", "space", *"a$((2+3))b", "enter")
        await desk.see("a5b")
        await desk.press("ctrl+g", "l", "d")
        await desk.see("Delete work/alpha?")
        await desk.press("escape", "ctrl+p")
        await desk.see("Search commands and replicas")
        await desk.write("work/al")
        await desk.see("go to work/alpha")
        await desk.press("enter")
        await desk.miss("Search commands and replicas")


@pytest.mark.long
async def test_the_jump_goes_to_a_replica_of_any_service(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    there = await other.create("beta")
    async with both(live, profile_of(other), monkeypatch) as desk:
        await desk.see("○ alpha", "○ work/beta")
        await choose(desk, "alpha")
        await turn(other, there.id)
        await eventually(lambda: desk.replica("work/beta").unseen, "the end of the turn")
        await desk.see("✓ 1 done")
        await desk.press("ctrl+right_square_bracket")
        await desk.see("work/beta · ")
        await eventually(lambda: not desk.replica("work/beta").unseen, "a look at it")


@pytest.mark.long
async def test_a_new_replica_is_made_where_the_person_says(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await other.create("beta")
    async with both(live, profile_of(other), monkeypatch) as desk:
        await desk.see("○ work/beta")
        await desk.press("n")
        await desk.see("New replica: on which service?")
        await desk.press("enter")  # where the cursor is
        await desk.see("Prompt (optional)")
        await desk.tab_to("repository")
        await desk.press("ctrl+u")
        await desk.tab_to("name")
        await desk.write("gamma")
        await desk.press("ctrl+s")
        await desk.see("work/gamma · ")
        async with other.client() as client:
            assert {one.name async for one in client.replicas.all()} == {"beta", "gamma"}


@pytest.mark.long
async def test_a_service_that_is_gone_holds_up_no_other(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    await other.create("beta")
    async with both(live, profile_of(other), monkeypatch) as desk:
        await desk.see("○ alpha", "○ work/beta", "work ● ")
        other.kill()
        await desk.see("work ✗ offline", "local ● ", "○ work/beta")
        await choose(desk, "alpha")
        await opened(desk, "alpha")
        await desk.write("hello")
        await desk.press("enter")
        await desk.see("I am the built-in agent")
        other.start()
        await other.ready()
        await desk.see("work ● ")


@pytest.mark.long
async def test_a_service_that_never_answers_holds_up_no_other(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        profile = f'url = "http://127.0.0.1:{port}"\nkey = "k"\nshown = true'
        async with both(live, profile, monkeypatch) as desk:
            await desk.see("○ alpha", "local ● ", "work ◌ connecting")
            await opened(desk, "alpha")
            await desk.write("hello")
            await desk.press("enter")
            await desk.see("I am the built-in agent")
            await desk.press("f3")
            await desk.write("hello")
            await desk.see("> hello")  # the hits of the other are not waited for


@pytest.mark.long
async def test_a_service_without_a_key_is_named_and_found_after_the_login(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    await other.create("beta")
    monkeypatch.setenv("QD_API_KEY", "of-the-service-in-use")
    profile = profile_of(other).splitlines()
    async with both(live, "\n".join((profile[0], profile[2])), monkeypatch) as desk:
        await desk.see("○ alpha", "local ● ", "work ✗ login needed")
        await desk.press("comma", "3")
        await desk.see("There is no key for work.")
        await desk.press("escape")
        kept = Path(os.environ["QUARTERDECK_HOME"]) / "client/keys/work"
        kept.parent.mkdir(parents=True)
        kept.write_bytes((other.home / "service/key").read_bytes())
        await desk.press("ctrl+r")
        await desk.see("○ work/beta", "work ● ")


@pytest.mark.long
async def test_a_key_that_cannot_be_sent_is_asked_for_again(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await live.create("alpha")
    await other.create("beta")
    printed = tmp_path / "key"
    printed.write_text("a password\nuser: me\n")  # as `pass show` prints it
    command = f'key_command = ["cat", "{printed}"]'
    profile = "\n".join((profile_of(other).splitlines()[0], command, "shown = true"))
    async with both(live, profile, monkeypatch) as desk:
        await desk.see("○ alpha", "local ● ", "work ✗ login needed")
        printed.write_bytes((other.home / "service/key").read_bytes())
        await desk.press("ctrl+r")
        await desk.see("○ work/beta", "work ● ")


@pytest.mark.long
async def test_another_service_is_used_after_one_beside_has_failed(
    live: Installation, other: Installation
) -> None:
    await live.create("alpha")
    await other.create("beta")

    def broken() -> Client:
        raise RuntimeError("a defect")

    async with live.cockpit() as desk:
        await desk.see("○ alpha")
        desk.app.show_beside(ServiceChoice(broken, "lab", None, "lab"))
        await desk.see("lab ✗ refused")
        await desk.app.move_to(ServiceChoice(other.client, "work", None, "work"))
        await desk.see("○ beta")
        await desk.miss("alpha")
        assert "a defect" in desk.app.failures.path.read_text()
        desk.app.failures.path.unlink()


async def to_connection(desk: Desk, name: str) -> None:
    """Puts the cursor of the settings on a connection."""
    listing = desk.app.screen.query_one(SettingsList)
    await desk.press("home")
    for _ in range(9):
        if listing.chosen_row is not None and listing.chosen_row.name == name:
            break
        await desk.press("down")


async def test_a_service_that_the_file_shows_since_the_start_is_shown_in_the_settings(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    profile = profile_of(other).replace("true", "false")
    async with both(live, profile, monkeypatch, (120, 40)) as desk:
        await desk.see("○ alpha", "local ● online")
        config = desk.app.surroundings.file  # pyright: ignore[reportOptionalMemberAccess]
        config.write_text(config.read_text().replace("shown = false", "shown = true"))
        await desk.press("comma", "3")
        await desk.see("[3 Connections]", "not shown by this cockpit yet")
        await to_connection(desk, "work")
        await desk.press("s")
        await desk.see("shown: ● online")


@pytest.mark.long
async def test_a_service_is_shown_and_hidden_in_the_settings(
    live: Installation, other: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.create("alpha")
    await other.create("beta")
    profile = profile_of(other).replace("true", "false")
    async with both(live, profile, monkeypatch, (120, 40)) as desk:
        await desk.see("○ alpha", "local ● online")
        config = desk.app.surroundings.file  # pyright: ignore[reportOptionalMemberAccess]
        for shown in (True, False):
            await desk.press("comma", "3")
            await desk.see("[3 Connections]")
            await to_connection(desk, "work")
            await desk.press("s")
            await desk.see("shown: ● online" if shown else "s to show beside")
            await desk.press("escape")
            if shown:
                await desk.see("○ work/beta")
            else:
                await desk.miss("work/beta")
            assert tomllib.loads(config.read_text())["profiles"]["work"]["shown"] is shown
