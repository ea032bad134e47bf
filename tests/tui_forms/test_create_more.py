"""What is rarely said of a new replica."""

import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.store.creation import CreationChoices, CreationRequest
from quarterdeck.store.git import RequestedRepository
from quarterdeck.store.status import ConnectionPhase
from quarterdeck.tui.forms import create
from quarterdeck.tui.forms.create_fields import More, unused_repositories, with_more
from quarterdeck.wire.agents import Agent
from tests.support.waiting import eventually
from tests.tui_shell.conftest import fixed_clock_zone as fixed_clock_zone
from tests.tui_shell.conftest import frozen as frozen
from tests.tui_shell.conftest import installation as installation
from tests.tui_shell.conftest import live as live
from tests.tui_shell.frozen import FrozenCockpit, screen_text
from tests.tui_shell.live import Installation


def test_what_was_said_is_in_the_wish() -> None:
    more = More.model_validate(
        {
            "others": ["https://host/lib.git dev", "/nowhere/at/all"],
            "plan_mode": True,
            "size": "large",
            "config": {"auto_stop_minutes": 5},
        }
    )
    wish = with_more(CreationRequest(message="Go"), more)
    assert wish == CreationRequest(
        message="Go",
        others=(
            RequestedRepository("https://host/lib.git", "dev"),
            RequestedRepository("/nowhere/at/all"),
        ),
        plan_mode=True,
        size="large",
        auto_stop_minutes=5,
    )


@pytest.mark.parametrize("repository", [None, "https://host/shop.git"])
def test_more_repositories_need_a_first_one(repository: str | None) -> None:
    others = (RequestedRepository("https://host/lib.git"),)
    wrong = unused_repositories(CreationRequest(repository_url=repository, others=others))
    assert (wrong is None) == (repository is not None)


@pytest.fixture
def library(installation: Installation, tmp_path: Path) -> Path:
    """Another repository, on a branch of its own."""
    made = tmp_path / "lib"
    shutil.copytree(installation.repository, made)
    subprocess.run(["git", "checkout", "-qb", "dev"], cwd=made, check=True)
    return made


@pytest.mark.long
async def test_two_repositories_and_rare_wishes(live: Installation, library: Path) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("More options (9)")
        await desk.tab_to("name")
        await desk.press("tab", "enter", "tab")
        await desk.write("/nowhere/at/all")
        await desk.press(*["tab"] * 7)
        await desk.write("2")
        await desk.press("ctrl+s")
        await desk.see("At least 3.")
        await desk.press("0", "ctrl+s")
        await desk.see("/nowhere/at/all is not a git repository")
        await desk.press("escape", "n")
        await desk.see("/nowhere/at/all", "Fewer options")
        await desk.tab_to("name")
        await desk.press("tab", "tab", "end", "ctrl+u")
        await desk.write(f"{library} dev")
        await desk.press("ctrl+s")
        await desk.see("replica")
        await desk.miss("New replica")
    async with live.client() as client:
        (replica,) = [one async for one in client.replicas.all()]
        assert [one.name for one in replica.repositories] == [live.repository.name, "lib"]
        found = {one.name: one.default_branch for one in await client.repositories.list()}
    assert found["lib"] == "dev"


async def test_what_could_not_be_read_follows_when_the_service_answers(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = frozen.app_state
    state.connection.phase = ConnectionPhase.CONNECTING
    agents = [
        Agent(id="codex", name="Codex", available=True),
        Agent(id="claude", name="Claude", available=False),
        Agent(id="gemini", name="Gemini", available=False, installed=True, reason="No key."),
    ]

    async def choices(client: object) -> CreationChoices:
        return CreationChoices([], [], agents)

    async def models(client: object, agent_id: str) -> list[str]:
        return []

    monkeypatch.setattr(create, "choices", choices)
    monkeypatch.setattr(create, "models_of", models)
    async with frozen.run_test(size=(120, 40)) as pilot:
        await pilot.press("n", *"Mend it")
        await eventually(lambda: "follow when it answers" in screen_text(frozen), "the reason")
        monkeypatch.setattr(type(state), "client", None)
        state.connection.phase = ConnectionPhase.ONLINE
        state.connection_changed()
        await eventually(lambda: "Codex" in screen_text(frozen), "the agents")
        text = screen_text(frozen)
        assert "follow when" not in text and "Mend it" in text
        assert "Gemini: No key. · Not installed: Claude" in text
        assert "quarterdeck  local" in text.splitlines()[0], "the status line stays visible"


@pytest.mark.long
async def test_the_prompt_comes_first_and_grows_to_half_the_screen(frozen: FrozenCockpit) -> None:
    frozen.add("fix-login")
    async with frozen.run_test(size=(100, 40)) as pilot:
        await pilot.press("n")
        await eventually(lambda: "New replica" in screen_text(frozen), "the dialog")
        await pilot.press(*"first", *["enter"] * 10)
        field = frozen.screen.query_one("#message")
        await eventually(lambda: field.region.height == 13, "11 lines and a border")
        await pilot.press(*["enter"] * 30)
        await eventually(lambda: field.region.height == 20, "half the screen")
        rows = screen_text(frozen).splitlines()
        [prompt] = [n for n, row in enumerate(rows) if "Prompt (optional)" in row]
        [repository] = [n for n, row in enumerate(rows) if "Repository  " in row]
        assert prompt < repository
        assert any("fix-login" in row for row in rows), "the list stays visible"
