"""What is rarely said of a new replica."""

import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.store.creation import Wish
from quarterdeck.store.repositories import RepositoryWish
from quarterdeck.tui.forms.create_more import More, unused_repositories, with_more
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
    wish = with_more(Wish(message="Go"), more)
    assert wish == Wish(
        message="Go",
        others=(
            RepositoryWish("https://host/lib.git", "dev"),
            RepositoryWish("/nowhere/at/all"),
        ),
        plan_mode=True,
        size="large",
        auto_stop_minutes=5,
    )


@pytest.mark.parametrize("repository", [None, "https://host/shop.git"])
def test_a_branch_needs_the_repository_it_is_of(repository: str | None) -> None:
    wrong = unused_repositories(Wish(repository_url=repository, branch="dev"))
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
        await desk.see("10 more")
        await desk.press("tab", "enter", "tab", "tab")
        await desk.write("/nowhere/at/all")
        await desk.press(*["tab"] * 7)
        await desk.write("2")
        await desk.press("ctrl+s")
        await desk.see("At least 3.")
        await desk.press("0", "ctrl+s")
        await desk.see("/nowhere/at/all is no git repository")
        await desk.press("escape", "n")
        await desk.see("/nowhere/at/all", "Less")
        await desk.press("tab", "tab", "tab", "end", "ctrl+u")
        await desk.write(f"{library} dev")
        await desk.press("ctrl+s")
        await desk.see("replica")
        await desk.miss("New replica")
    async with live.client() as client:
        (replica,) = [one async for one in client.replicas.all()]
        assert [one.name for one in replica.repositories] == [live.repository.name, "lib"]
        found = {one.name: one.default_branch for one in await client.repositories.list()}
    assert found["lib"] == "dev"
