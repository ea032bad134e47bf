"""What a new replica starts from, as the dialog asks for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from quarterdeck.client.errors import InvalidRequestError, PayloadTooLargeError
from quarterdeck.store.creation import CreationRequest
from quarterdeck.tui.forms.create_fields import place_error, pull_request_at
from quarterdeck.tui.forms.kit.controls import OnOff
from quarterdeck.wire.git import GitState
from tests.support.git import git
from tests.support.installation import snapshot
from tests.support.waiting import eventually
from tests.tui_shell.conftest import fixed_clock_zone as fixed_clock_zone
from tests.tui_shell.conftest import installation as installation
from tests.tui_shell.conftest import live as live
from tests.tui_shell.live import Desk, Installation


@pytest.fixture
def dirty(installation: Installation) -> Iterator[Path]:
    """The checkout that the cockpit is started in, on a branch of its own, with two changes."""
    place = installation.repository

    git(place, "checkout", "-q", "-b", "feature")
    git(place, "commit", "-q", "--allow-empty", "-m", "Of the branch")
    (place / "README").write_text("Edited.\n")
    (place / "new").write_text("new\n")
    yield place
    git(place, "clean", "-qfd")
    git(place, "checkout", "-qf", "main")
    git(place, "branch", "-qD", "feature")


async def state(live: Installation, desk: Desk, name: str) -> tuple[GitState, str]:
    """The state of a replica's repository, and what is not committed there."""
    made = desk.replica(name)
    await eventually(lambda: made.status == "active", "the replica")
    async with live.client() as client:
        (found,) = await client.git.states(made.id)
        done = await client.exec.run(made.id, "cd shop && git status --porcelain")
    return found, done.output


def field(desk: Desk) -> Input:
    return desk.app.screen.query_one("#base", Input)


async def test_the_branch_that_is_checked_out_and_uncommitted_files(
    live: Installation, dirty: Path
) -> None:
    before = snapshot(dirty)
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("New replica", "feature (checked out)", "[ ] include 2 files")
        await desk.tab_to("name")
        await desk.press(*"plain", "ctrl+s")
        await desk.miss("New replica")
        found, changes = await state(live, desk, "plain")
        assert (found.base_branch, found.ahead, changes) == ("feature", 0, "")

        await desk.press("escape", "n")
        await desk.see("New replica", "[ ] include 2 files")
        await desk.tab_to("name")
        await desk.press(*"whole")
        await desk.tab_to("uncommitted")
        await desk.press("space")
        await desk.see("[x] include 2 files")
        await desk.press("escape")
        await desk.miss("New replica")
        await desk.press("n")
        await desk.see("New replica", "[x] include 2 files", "whole")
        await desk.press("ctrl+s")
        await desk.miss("New replica")
        found, changes = await state(live, desk, "whole")
        assert found.base_branch == "feature"
        assert changes.splitlines() == [" M README", "?? new"]
    objects = ".git/objects/"
    after = snapshot(dirty)
    assert {name: kept for name, kept in after.items() if not name.startswith(objects)} == {
        name: kept for name, kept in before.items() if not name.startswith(objects)
    }


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("https://host.example/sea/shop/pull/7", ("https://host.example/sea/shop", 7)),
        ("https://host.example/sea/shop/pull/7/files#r1", ("https://host.example/sea/shop", 7)),
        (
            "http://host.example/a/b/shop/-/merge_requests/12/diffs?tab=1",
            ("http://host.example/a/b/shop", 12),
        ),
        ("https://host.example/sea/pull/shop.git", None),
        ("/srv/shop/pull/7", None),
        ("https://host.example/sea/shop/pull/0", None),
    ],
)
def test_the_address_of_a_pull_request(typed: str, found: tuple[str, int] | None) -> None:
    assert pull_request_at(typed) == found


async def test_the_address_of_a_pull_request_fills_two_fields(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("New replica")
        await desk.tab_to("repository")
        await desk.press("ctrl+u")
        await desk.write("https://host.example/sea/shop/pull/7/files")
        await desk.press("tab")
        await eventually(lambda: field(desk).value == "#7", "the number of the pull request")
        await desk.miss("pull/7")
        await desk.see("https://host.example/sea/shop")


async def test_a_pull_request_is_a_base(live: Installation, dirty: Path) -> None:
    head = git(dirty, "rev-parse", "feature").strip()
    git(dirty, "update-ref", "refs/pull/7/head", head)
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("New replica", "[ ] include 2 files")
        await desk.tab_to("name")
        await desk.write("reviewed")
        field(desk).value = "#8"
        await desk.press("ctrl+s")
        await desk.see("New replica", "8")
        await desk.miss("Creating")
        assert desk.app.screen.query_one("#base-error").display
        field(desk).value = "#7"
        included = desk.app.screen.query_one(OnOff)
        included.value = True
        await desk.press("ctrl+s")
        await desk.see("Uncommitted files cannot be added")
        included.value = False
        await desk.press("ctrl+s")
        await desk.miss("New replica")
        made = desk.replica("reviewed")
        await eventually(lambda: made.status == "active", "the replica")
        async with live.client() as client:
            done = await client.exec.run(made.id, "cd shop && git rev-parse HEAD")
    git(dirty, "update-ref", "-d", "refs/pull/7/head")
    assert done.output.strip() == head


@pytest.mark.long
async def test_a_branch_is_completed_and_an_unknown_one_refused(
    live: Installation, dirty: Path
) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("New replica", "feature (checked out)")
        field(desk).focus()
        await desk.press(*"nothing", "ctrl+s")
        await desk.see("shop has no branch, tag or commit", "nothing.", "[ ] include 2 files")
        rows = desk.text.splitlines()
        at = next(n for n, row in enumerate(rows) if "shop has no branch" in row)
        assert "Base" in rows[at - 1]  # beside its own field, and not that of uncommitted files
        assert desk.app.focused is field(desk)
        await desk.press("ctrl+u", *"ma")
        await eventually(lambda: field(desk)._suggestion == "main", "the completion")
        await desk.press("right", "ctrl+s")
        await desk.miss("New replica")
        found, _ = await state(live, desk, "shop")
        assert found.base_branch == "main"


@pytest.mark.long
async def test_branches_of_a_repository_elsewhere_come_from_the_service(
    live: Installation, dirty: Path, tmp_path: Path
) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        url = f"file://{dirty}/.git"
        async with live.client() as client:
            from quarterdeck.wire.repositories import ConnectRepository

            made = await client.repositories.connect(ConnectRepository(url=url, name="far"))
            assert (await client.repositories.branches(made.id)).branches[0] == "feature"
        desk.app.app_state.directory = tmp_path
        await desk.press("n")
        await desk.see("New replica", "feature (checked out)")
        repository = desk.app.screen.query_one("#repository", Input)
        repository.value = url
        repository.focus()
        await desk.press("tab")
        await desk.see("default branch")
        await desk.miss("include 2 files")
        await desk.press(*"fea")
        await eventually(lambda: field(desk)._suggestion == "feature", "the completion")


async def test_a_base_needs_a_repository(live: Installation) -> None:
    async with live.cockpit((80, 24)) as desk:
        await desk.see("online")
        await desk.press("n")
        await desk.see("New replica", "main (checked out)")
        desk.app.screen.query_one("#repository", Input).value = ""
        field(desk).value = "main"
        await desk.press("ctrl+s")
        await desk.see("Name the repository above.")


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequestError("shop has no branch x.", status=400, details="config.base: no route"),
        InvalidRequestError("There are none.", status=400, details="config.uncommitted: 5"),
        PayloadTooLargeError("It is too large.", status=413, details="body: at most 5 bytes"),
    ],
)
def test_a_refusal_stands_beside_the_base(error: Any) -> None:
    placed = place_error(error, CreationRequest(repository_url="/work/shop", uncommitted=b"PACK"))
    assert placed.field == "base"
