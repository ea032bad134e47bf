"""The dialog that gets work out of a replica of the real service, into a real checkout."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest

from quarterdeck.cli.target import embedded_target
from quarterdeck.client.client import Client
from quarterdeck.client.connection import HttpConnection
from quarterdeck.store import review
from quarterdeck.store.changes_diff import FileChange
from quarterdeck.store.commands import Commands
from quarterdeck.store.losses import what_rewinds, work_words
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.git import Checkpoint
from tests.support.git import git
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation

WORK = "```sh\nprintf 'A better shop.\\n' > README\ngit commit -qam 'Better'\nprintf 'x = 1\\n' > new.py\n```"


@pytest.fixture
async def shop(live: Installation, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    """A service with a replica, `alpha`, that has a commit and an uncommitted file."""
    monkeypatch.setenv("QUARTERDECK_HOME", str(live.home))
    start = git(live.repository, "rev-parse", "main")
    clean(live.repository, start)  # of what tests of other modules fetched into it
    await live.create_with_repository("alpha", WORK)
    repository = live.repository
    yield live
    clean(repository, start)


def clean(repository: Path, start: str) -> None:
    """Leave nothing but the branch `main`, at a commit."""
    git(repository, "checkout", "-qf", "main")
    git(repository, "reset", "-q", "--hard", start)
    git(repository, "clean", "-qfdx")
    for branch in git(repository, "branch", "--format=%(refname:short)").split():
        if branch != "main":
            git(repository, "branch", "-qD", branch)


async def ready(desk: Desk) -> None:
    """Wait until the agent has done its work, and open the dialog."""
    await desk.see("alpha")
    await eventually(lambda: desk.replica("alpha").done_at)
    await desk.press("G")
    await desk.see("Get changes: alpha", "1 commit ahead of main", "1 file uncommitted +1 -0")


@pytest.mark.long
async def test_work_is_committed_fetched_applied_merged_and_pushed(
    shop: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop.cockpit(size=(120, 40)) as desk:
        # The cockpit's own service counts, whatever the variables say.
        desk.app.app_state.git_variables = embedded_target().git_variables
        monkeypatch.setenv("QD_URL", "http://127.0.0.1:1")
        await ready(desk)
        await desk.see(
            "→ qd/alpha (checkout untouched)", "(on main, clean)", "$ qd replica fetch alpha"
        )
        await desk.press("f")
        await desk.see("Fetched qd/alpha", "1 file stays uncommitted")
        assert git(shop.repository, "log", "-1", "--format=%s", "qd/alpha") == "Better"
        assert git(shop.repository, "status", "--porcelain") == ""

        await desk.press("e")
        for _ in range(40):
            await desk.press("backspace")
        await desk.press(*"Addx", "enter")
        await desk.see('"Addx"')
        await desk.press("c")
        await desk.see("Addx.", "Everything is committed")

        await desk.press("a")
        await desk.see("2 files: README, new.py.", "(on main, 2 uncommitted files)")
        assert (shop.repository / "README").read_text() == "A better shop.\n"

        await desk.press("d")
        await desk.see("Saved …", "alpha.patch.")
        assert "+A better shop." in (shop.repository / "alpha.patch").read_text()
        await desk.press("d")
        await desk.see("alpha-2.patch.")

        (shop.repository / "README").write_text("Another shop.\n")
        await desk.press("m")
        await desk.see("Files: README.")
        (shop.repository / "README").write_text("A better shop.\n")  # as the merge leaves it
        await desk.press("m")
        await desk.see("Merged qd/alpha into main")
        assert git(shop.repository, "log", "-1", "--format=%s") == "Addx"

        git(shop.repository, "branch", "-qD", "qd/alpha")
        await desk.press("p")
        await desk.see("Pushed qd/alpha")
        assert git(shop.repository, "log", "-1", "--format=%s", "qd/alpha") == "Addx"

        # The base branch has everything by now.
        await desk.press("d")
        await desk.see("Nothing to save")
        assert not (shop.repository / "alpha-3.patch").exists()
        await desk.press("escape")
        await desk.miss("Get changes: alpha")


@pytest.mark.long
async def test_a_refusal_is_explained_and_a_diverged_branch_is_replaced(
    shop: Installation,
) -> None:
    async with shop.cockpit(size=(80, 24)) as desk:
        await ready(desk)
        (shop.repository / "README").write_text("Mine.\n")
        await desk.press("a")
        await desk.see("Files: README.")
        assert not (shop.repository / "new.py").exists()
        git(shop.repository, "commit", "-qam", "Mine")
        await desk.press("a")
        await desk.see("U brings the base branch in", "A asks the agent")

        await desk.press("f")
        await desk.see("Fetched qd/alpha")
        async with shop.client() as client:
            replica = desk.replica("alpha").id
            await client.exec.run(replica, "cd shop && git commit -q --amend -m Other")
        await desk.press("f")
        await desk.see("has diverged", "F replaces the local branch.")
        assert git(shop.repository, "log", "-1", "--format=%s", "qd/alpha") == "Better"
        await desk.press("F")
        await desk.see("Fetched qd/alpha")
        assert git(shop.repository, "log", "-1", "--format=%s", "qd/alpha") == "Other"

        git(shop.repository, "checkout", "-qf", "qd/alpha")
        await desk.press("r")
        await desk.see("qd/alpha is checked out here")
        await desk.press("p")
        await desk.see("checked out")
        assert git(shop.repository, "rev-parse", "--abbrev-ref", "HEAD") == "qd/alpha"


async def test_outside_a_repository_the_reason_is_named(
    shop: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "repository", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    async with shop.cockpit(size=(80, 24)) as desk:
        await ready(desk)
        await desk.see("qd was not started in a git")
        await desk.press("f")
        await desk.see("qd was not started in a git repository.")
        await desk.press("down", "down", "down", "down", "down", "down", "enter")
        await desk.see("Saved ")
        assert (tmp_path / "alpha.patch").read_text()


@pytest.mark.long
async def test_the_palette_and_the_help_have_it(shop: Installation) -> None:
    async with shop.cockpit(size=(100, 30)) as desk:
        await ready(desk)
        await desk.press("question_mark")
        await desk.see("Merge into the checked-out branch", "Replace a diverged local branch")
        await desk.press("escape", "escape")
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("ctrl+p", *"merge", "enter")
        await desk.see("Get changes: alpha", "1 commit ahead of main")
        await desk.press("escape")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("tab")
        await eventually(lambda: desk.focus != "Composer")
        await desk.press("G")
        await desk.see("Get changes: alpha", "1 commit ahead of main")


@pytest.mark.long
async def test_archiving_and_deleting_name_work_that_was_never_pushed(shop: Installation) -> None:
    async with shop.cockpit(size=(120, 40)) as desk:
        await desk.see("alpha")
        await eventually(lambda: desk.replica("alpha").done_at)
        await eventually(
            lambda: work_words([desk.replica("alpha")]).endswith("1 file not committed")
        )
        await desk.press("A")
        await desk.see("Archive alpha?", "1 commit never pushed", "1 file not committed")
        await desk.press("escape")
        await desk.miss("Archive alpha?")
        await desk.press("s")
        await desk.see("☾ sleeping")
    async with shop.cockpit(size=(50, 20)) as desk:  # too narrow for a pane: nothing is opened
        await desk.see("alpha", "sleeping")
        await desk.press("d")
        await desk.see("Delete alpha?", "never pushed, 1 file")
        await desk.press("escape")
        await desk.miss("Delete alpha?")
        await desk.press("A")
        await desk.see("Archive alpha?", "1 commit never")
        await desk.press("y")
        await desk.see("archived")


@pytest.mark.long
async def test_another_repository_is_named_before_anything_is_brought_into_it(
    shop: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "NOTES").write_text("Mine.\n")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "Notes")
    monkeypatch.setattr(shop, "repository", other)
    async with shop.cockpit(size=(120, 40)) as desk:
        desk.app.app_state.git_variables = embedded_target().git_variables
        await ready(desk)
        await desk.see("…/other is not a clone of")
        for key, verb in (("f", "Fetch"), ("a", "Apply"), ("m", "Merge")):
            await desk.press(key)
            await desk.see(f"{verb} into another repository?")
            await desk.press("escape")
            await desk.miss(f"{verb} into another repository?")
        assert git(other, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
        await desk.press("f", "y")
        await desk.see("Fetched qd/alpha")
        assert git(other, "log", "-1", "--format=%s", "qd/alpha") == "Better"
        await desk.press("r")
        await desk.miss("is not a clone of")


@pytest.mark.long
async def test_a_replica_is_forked(shop: Installation) -> None:
    async with shop.cockpit(size=(120, 40)) as desk:
        await desk.see("alpha")
        await eventually(lambda: desk.replica("alpha").done_at)
        await desk.press("f")
        await desk.see("Fork alpha", "alpha-fork", "same files, branches and uncommitted changes")
        await desk.press("ctrl+s")
        await eventually(
            lambda: "alpha-fork" in [one.name for one in desk.app.app_state.replicas.values()]
        )
        await eventually(lambda: work_words([desk.replica("alpha-fork")]))
        assert work_words([desk.replica("alpha-fork")]).startswith("1 commit never pushed")
        await desk.see("qd/alpha-fork", "enter sends")
        await eventually(lambda: desk.focus == "Composer")
        await desk.press("ctrl+p", *"fork", "enter")
        await desk.see("Fork alpha-fork", "alpha-fork-fork")
        await desk.press("escape")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "No file has changed since then."),
        (1, "Takes back +2 -1 in f0."),
        (8, "Takes back +16 -8 in f0, f1, f2, f3, f4, f5 and 2 more."),
    ],
)
def test_what_a_rewind_takes_back(count: int, words: str) -> None:
    files = [FileChange(f"f{n}", f"f{n}", added=2, removed=1) for n in range(count)]
    start = Checkpoint(id="turns/1", at=utc_now(), title="go", commits={"shop": "a" * 40})
    assert words in what_rewinds(start, (files, False), chat=True).splitlines()


PATCH = """diff --git a/f b/f
--- a/f
+++ b/f
@@ -1 +1,3 @@
+one
+two
 three
"""


@pytest.mark.parametrize(
    ("status", "most", "words"),
    [
        (200, 1000, "Takes back +2 -0 in f."),
        (200, len(PATCH) - 8, "Takes back at least +2 -0 in f."),
        (200, 4, "The changes that it takes back could not be read."),
        (500, 1000, "The changes that it takes back could not be read."),
    ],
)
async def test_what_a_rewind_takes_back_may_not_be_known(
    monkeypatch: pytest.MonkeyPatch, status: int, most: int, words: str
) -> None:
    monkeypatch.setattr(review, "MOST_BYTES", most)
    start = Checkpoint(id="turns/1", at=utc_now(), title="go", commits={"shop": "a" * 40})
    answer = httpx.MockTransport(lambda _: httpx.Response(status, text=PATCH))
    async with Client(HttpConnection("http://test", "key", transport=answer)) as client:
        owner: Any = SimpleNamespace(client=client)
        changes = await Commands(owner).changes_since(UUID(int=1), start)
    assert words in what_rewinds(start, changes, chat=True).splitlines()
