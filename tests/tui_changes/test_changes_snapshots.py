"""How changes look, at the sizes people have."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from textual.pilot import Pilot

from quarterdeck.local.checkout import LocalCheckout
from quarterdeck.local.repository import CheckoutState
from quarterdeck.store.changes_comments import lines_of
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.review import Review
from quarterdeck.tui.themes import THEMES
from quarterdeck.wire.git import (
    Against,
    Checkpoint,
    FailedCheck,
    GitState,
    PullRequestChecks,
    PullRequestDetail,
)
from quarterdeck.wire.git_state import RepositoryStatus, Uncommitted
from quarterdeck.wire.replicas import PullRequest
from tests.tui_changes.material import EVERYTHING, LOGIN, Reading, changing, take
from tests.tui_shell.frozen import START, FrozenCockpit

SIZES = [(80, 24), (120, 40), (200, 60)]
two_sizes = pytest.mark.parametrize("size", SIZES[:2], ids=["80x24", "120x40"])
each_size = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "200x60"])


def comment(review: Review, at: int, text: str, *, unfinished: bool = False) -> None:
    """A comment on a line of the first file."""
    change = (review.repositories[0].files or [])[0]
    lines = lines_of("shop", change.path, [change.numbered()[at]])
    assert lines is not None
    review.write(review.begin(lines), text, unfinished=unfinished)


def reading(app: FrozenCockpit, *keys: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Opens the changes, and types."""

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(app, pilot)
        await reader.open()
        await reader.press(*keys)
        await reader.see("[3 Changes]")

    return run


def reviewed(app: FrozenCockpit) -> None:
    review = changing(app, EVERYTHING)
    comment(review, 4, "Thirty **what**?\nSay so in the name.")
    comment(review, 5, "Or in hou", unfinished=True)


@each_size
def test_changes(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    reviewed(frozen)
    keys = ("right_square_bracket", "slash", *"return", "enter")
    assert snap_compare(frozen, terminal_size=size, run_before=reading(frozen, *keys))


@pytest.mark.long
@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_changes_in_other_colors(snap_compare: Any, frozen: FrozenCockpit, theme: str) -> None:
    reviewed(frozen)
    frozen.theme = THEMES[theme]
    assert snap_compare(frozen, terminal_size=(120, 40), run_before=reading(frozen))


@pytest.mark.parametrize("size", SIZES[1:], ids=["120x40", "200x60"])
def test_side_by_side(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    reviewed(frozen)
    assert snap_compare(frozen, terminal_size=size, run_before=reading(frozen, "u"))


@each_size
def test_writing_a_comment(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    changing(frozen, EVERYTHING)
    keys = ("right_square_bracket", "down", "v", "down", "c", *"Why", "ctrl+j", "?")
    assert snap_compare(frozen, terminal_size=size, run_before=reading(frozen, *keys))


def test_a_list_of_files(snap_compare: Any, frozen: FrozenCockpit) -> None:
    changing(frozen, EVERYTHING, EVERYTHING)
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=reading(frozen, "Z"))


def test_changes_of_a_sleeping_one(snap_compare: Any, frozen: FrozenCockpit) -> None:
    numbers = {"repository": "shop", "git_diff": {"added": 12, "removed": 3}}
    state = frozen.add("old-idea", "sleeping", repository_statuses=[numbers])
    review = frozen.app_state.reviews.of(state.id)
    take(review, LOGIN)
    review.settle()
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=reading(frozen))


def test_committing_marked_files(snap_compare: Any, frozen: FrozenCockpit) -> None:
    review = changing(frozen, EVERYTHING)
    review.show_against(Against.UNCOMMITTED)
    take(review, LOGIN)
    review.mark("shop", "shop/login.py")
    review.settle()
    assert snap_compare(frozen, terminal_size=(80, 24), run_before=reading(frozen, "C"))


@pytest.mark.long
@two_sizes
def test_getting_changes(
    snap_compare: Any,
    frozen: FrozenCockpit,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    sources = {"shop": "/home/me/shop", "docs": "git@host.example:team/docs.git"}
    repositories = [
        {"id": UUID(int=number), "name": name, "url": url}
        for number, (name, url) in enumerate(sources.items())
    ]
    frozen.add("fix-login", repositories=repositories)
    left = Uncommitted(files=2, added=12, removed=3)
    states = [
        GitState(repository="docs", branch="qd/fix-login", base_branch="main", ahead=0, behind=4),
        GitState(
            repository="shop", branch="qd/fix-login", base_branch="main", ahead=1, uncommitted=left
        ),
    ]

    async def answered(replica_id: UUID) -> list[GitState]:
        return states

    async def found(*_: object) -> LocalCheckout:
        return LocalCheckout(Path("/home/me/shop"), Path("/home/me/shop/.git"), {})

    async def standing(checkout: LocalCheckout) -> CheckoutState:
        return CheckoutState("main", 0)

    async def known(_: LocalCheckout, source: str, commit: str | None) -> bool:
        return source == "/home/me/shop"

    client = SimpleNamespace(git=SimpleNamespace(states=answered))
    monkeypatch.setattr(type(frozen.app_state), "client", client)
    monkeypatch.setattr(LocalCheckout, "find", found)
    monkeypatch.setattr(LocalCheckout, "state", standing)
    monkeypatch.setattr(LocalCheckout, "is_clone", known)
    monkeypatch.setenv("HOME", "/home/me")

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(frozen, pilot)
        await reader.see("enter sends")
        await reader.press("G", "down", "down")
        await reader.see("Apply as a patch")

    assert snap_compare(frozen, terminal_size=size, run_before=run)


def of_shop(app: FrozenCockpit, *pulls: PullRequestDetail) -> ReplicaState:
    """A replica of one repository, whose pull requests were read."""
    repository = {"id": UUID(int=1), "name": "shop", "url": "git@host.example:team/shop.git"}
    state = app.add("fix-login", repositories=[repository])
    left = Uncommitted(files=2, added=12, removed=3)
    status = RepositoryStatus(repository="shop", base_branch="main", ahead=1, uncommitted=left)
    state.record.repository_statuses = [status]
    state.pull_requests = list(pulls)
    return state


def answering(app: FrozenCockpit, monkeypatch: pytest.MonkeyPatch, answer: list[Any]) -> None:
    """Hosts and checkpoints answer this."""

    async def answered(replica_id: UUID) -> list[Any]:
        return answer

    client = SimpleNamespace(
        pull_requests=SimpleNamespace(list=answered), git=SimpleNamespace(checkpoints=answered)
    )
    monkeypatch.setattr(type(app.app_state), "client", client)


RED = PullRequestDetail(
    repository="shop",
    number=341,
    url="https://host.example/team/shop/pull/341",
    title="Fix the login time-out",
    state="open",
    draft=False,
    base="main",
    head="qd/fix-login",
    review="changes_requested",
    unresolved_threads=3,
    checks=PullRequestChecks(
        state="failing",
        failed=[
            FailedCheck(name="lint", url="https://ci.example/runs/1"),
            FailedCheck(name="tests (3.12)", url="https://ci.example/runs/2"),
        ],
    ),
)
GREEN = RED.model_copy(
    update={
        "review": "approved",
        "unresolved_threads": 0,
        "checks": PullRequestChecks(state="passing"),
        "number": 339,
    }
)
MERGED = RED.model_copy(update={"state": "merged", "number": 337})


@pytest.mark.long
@two_sizes
def test_opening_a_pull_request(
    snap_compare: Any,
    frozen: FrozenCockpit,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    of_shop(frozen)
    answering(frozen, monkeypatch, [])

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(frozen, pilot)
        await reader.see("enter sends")
        await reader.press("P")
        await reader.see("Open a pull request", "2 uncommitted files")

    assert snap_compare(frozen, terminal_size=size, run_before=run)


@two_sizes
def test_a_pull_request(
    snap_compare: Any,
    frozen: FrozenCockpit,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    of_shop(frozen, RED, MERGED)
    answering(frozen, monkeypatch, [RED, MERGED])
    monkeypatch.setenv("SSH_CONNECTION", "far away")

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(frozen, pilot)
        await reader.see("enter sends")
        await reader.press("P")
        await reader.see("2 checks failed")
        await reader.press("o")
        await reader.see("open already.")

    assert snap_compare(frozen, terminal_size=size, run_before=run)


@pytest.mark.long
@two_sizes
def test_confirming_a_merge(
    snap_compare: Any,
    frozen: FrozenCockpit,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    of_shop(frozen, RED)
    answering(frozen, monkeypatch, [RED])

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(frozen, pilot)
        await reader.see("enter sends")
        await reader.press("P")
        await reader.see("2 checks failed")
        await reader.press("s")
        await reader.see("Merge #341")

    assert snap_compare(frozen, terminal_size=size, run_before=run)


@two_sizes
def test_rewinding(
    snap_compare: Any,
    frozen: FrozenCockpit,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    of_shop(frozen)
    titles = ["Write a test, too", "Before a rewind", "Fix the login time-out"]
    checkpoints = [
        Checkpoint(id=f"turns/{n}", at=START, title=title, commits={"shop": "a" * 40})
        for n, title in enumerate(titles)
    ]
    answering(frozen, monkeypatch, checkpoints)

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(frozen, pilot)
        await reader.see("enter sends")
        await reader.press("R")
        await reader.see("Before a rewind")
        await reader.press("down")

    assert snap_compare(frozen, terminal_size=size, run_before=run)


@each_size
def test_pull_requests_in_rows_and_the_head_line(
    snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    of_shop(frozen, RED)
    pending = GREEN.model_copy(
        update={"review": "required", "checks": PullRequestChecks(state="pending")}
    )
    draft = RED.model_copy(update={"draft": True, "review": None, "checks": PullRequestChecks()})
    for name, pull in (("a", GREEN), ("b", pending), ("c", MERGED), ("draft", draft)):
        frozen.add(name).pull_requests = [pull]
    known = PullRequest(repository="shop", number=7, url="https://host.example/team/shop/pull/7")
    frozen.add("not-read", pull_requests=[known])

    async def run(pilot: Pilot[Any]) -> None:
        reader = Reading(frozen, pilot)
        await reader.see("enter sends")
        await reader.press("enter")
        await reader.see("#341", "#7", "enter sends")

    assert snap_compare(frozen, terminal_size=size, run_before=run)
