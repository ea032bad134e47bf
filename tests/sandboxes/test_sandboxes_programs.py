"""Programs of the person's are seen in sandboxes, and nothing else of their home."""

import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from quarterdeck.local.home import Home
from quarterdeck.local.programs import person_path
from quarterdeck.sandboxes.bubblewrap import Wanted, shown_to_sandboxes
from quarterdeck.sandboxes.process import ProcessDriver
from tests.sandboxes.conftest import ENGINE, Bench
from tests.sandboxes.installed import WAYS, cargo, npm_global, put

Way = Callable[[Path], Path]
MOUNTS = "cat /proc/self/mountinfo"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a secret in it."""
    person = tmp_path / "person"
    put(person / ".ssh/id", "secret")
    put(person / ".codex/auth.json", "secret")
    monkeypatch.setenv("HOME", str(person))
    return person


@pytest.fixture
def installed(person: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Way], None]:
    def install(way: Way) -> None:
        monkeypatch.setenv("PATH", f"{way(person)}:{os.environ['PATH']}")

    return install


@pytest.fixture
async def shown(home: Home) -> AsyncGenerator[Bench]:
    wanted = Wanted(("agent",))
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0, wanted=lambda: wanted))
    yield bench
    await bench.close()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_an_agent_is_seen_wherever_it_was_installed(
    way, person, installed, shown, require_tool
):
    require_tool("bwrap")
    installed(way)
    workspace = await shown.started()
    assert (await shown.driver.isolation()).mode == "bubblewrap"
    assert (await shown.said(workspace, "agent one")).startswith(WAYS[way])
    assert "secret" not in await shown.said(workspace, f"grep -rs secret {person} || true")
    mounts = [line.split() for line in (await shown.said(workspace, MOUNTS)).splitlines()]
    own = [options for _, _, _, _, place, options, *_ in mounts if str(person) in place]
    assert own
    assert all("ro" in options.split(",") for options in own)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_without_bubblewrap_it_is_called_alike(way, person, shown, few_programs, monkeypatch):
    with few_programs(), monkeypatch.context() as inner:
        inner.setenv("PATH", f"{way(person)}:{os.environ['PATH']}")
        workspace = await shown.started()
        assert (await shown.driver.isolation()).mode == "none"
        assert (await shown.said(workspace, "agent one")).startswith(WAYS[way])


async def test_of_a_prefix_only_the_package_and_the_interpreter(person, installed, home):
    installed(npm_global)
    found = shown_to_sandboxes(Wanted(("agent",)), home)
    prefix = person / ".nvm/versions/node/v22.1.0"
    assert set(found.paths) == {prefix / "lib/node_modules/@acme/agent", prefix / "bin/node"}
    assert set(found.calls) == {"agent", "node"}


@pytest.mark.long
async def test_a_new_agent_is_seen_from_the_next_start_and_a_removed_one_is_not(
    person, installed, shown
):
    workspace = await shown.started()
    assert (await shown.inside(workspace, "agent one"))[0] != 0
    installed(cargo)
    await shown.driver.stop(workspace)
    await shown.driver.start(workspace)
    assert await shown.said(workspace, "agent one") == "cargo agent one"
    (person / ".cargo/bin/agent").unlink()
    await shown.driver.stop(workspace)
    await shown.driver.start(workspace)
    assert (await shown.inside(workspace, "agent one"))[0] != 0
    assert await shown.said(workspace, "qd --version")


async def test_an_agent_in_the_systems_directories_is_called_there(home, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = shown_to_sandboxes(Wanted(("sh", "missing")), home)
    assert not found.paths
    assert not found.calls


def test_a_home_is_never_shown_whole(person, home):
    """Whatever a program lies in: the home, what is above it, and the installation stay unseen."""
    put(person / "pyvenv.cfg", "home = /usr/bin\n")
    put(person / "package.json", "{}")
    put(person / "bin/agent.js", "#!/bin/sh\n")
    wanted = Wanted((f"{person}/bin/agent.js",), (person, person.parent, home.root))
    found = shown_to_sandboxes(wanted, home)
    assert found.paths == (person / "bin/agent.js",)


def test_one_that_cannot_be_followed_keeps_the_others_from_nobody(person, installed, home, caplog):
    installed(cargo)
    circle = person / "circle"
    circle.symlink_to(circle)
    put(person / ".cargo/bin/broken", f"#!{circle}\n")
    found = shown_to_sandboxes(Wanted(("broken", "agent")), home)
    assert "agent" in found.calls
    assert "broken cannot be shown to sandboxes" in caplog.text


def test_where_programs_are_looked_for(home):
    given = {"PATH": "/usr/bin::relative:/usr/bin", "HOME": "/home/ann"}
    places = person_path(home, given).split(":")
    assert places[0] == "/usr/bin"
    assert "/home/ann/.local/bin" in places
    assert places[-1] == str(home.agents / "bin")
    assert all(place.startswith("/") for place in places)
    assert len(places) == len(set(places))
