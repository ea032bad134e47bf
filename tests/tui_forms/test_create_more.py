"""What is rarely said of a new replica."""

import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.store.creation import CreationRequest
from quarterdeck.store.git import RequestedRepository
from quarterdeck.tui.forms.create_fields import More, unused_repositories, with_more
from tests.tui_shell.conftest import fixed_clock_zone as fixed_clock_zone
from tests.tui_shell.conftest import installation as installation
from tests.tui_shell.conftest import live as live
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


async def test_two_repositories_and_rare_wishes(live: Installation, library: Path) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("More options (9)")
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
